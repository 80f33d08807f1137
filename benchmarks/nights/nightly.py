"""Nightly runs of four English guides with preset laptop: time, memory and scores; scores of two German
guides.

Measures wall time and memory of all processes of a run (the sum of resident sets, sampled every 0.2 s), a
second run on unchanged input, and a third run after the guide of the United Kingdom changed: it lacks the
programmes of every tenth title. Scores are those of the model and of the baselines of the same run; their
intervals are a bootstrap over families of titles. Precision@10 has no rival, because our vectors are trained
on categories and the vectors of the baselines are not. The rows "alone, CPU seconds" say where the time goes:
the stages of a first night run one after the other in one process.
"""

import gzip
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from benchmarks.claims import SAMPLE, Claim, guides, run
from benchmarks.nights.night import run_night
from benchmarks.nights.plain_run import ONE_BY_ONE
from tasks.evaluate.settings import EvaluateSettings

STAGES = (
    "tokenize", "preprocess", "baselines", "train", "augment", "embed", "neighbours", "layout", "cluster",
    "evaluate", "draw",
)  # fmt: skip
RIVALS = tuple(baseline.name for baseline in EvaluateSettings().baselines if baseline.name != "majority")


def measure_nightly(quick: bool) -> Sequence[Claim]:
    """Measures all claims of this file."""
    feeds = [SAMPLE] if quick else guides("UK1", "US1", "AU1", "ZA1")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        first, second = run_night(home, feeds), run_night(home, feeds)
        stages = _cpu_by_stage(Path(folder) / "stages", feeds)
        scores = {"the sample guide" if quick else "four English guides": _scores(home)}
        third = run_night(home, [change(feeds[0], Path(folder)), *feeds[1:]])
        if not quick:
            run_night(Path(folder) / "german", guides("magenta_de_2022-05", "magenta_de_2022-06"))
            scores["two German guides"] = _scores(Path(folder) / "german")
    repeated = sum(
        not any(stage in line.split() and "unchanged" in line for line in second.output.splitlines())
        for stage in STAGES
    )
    condition = f"one of {len(feeds)} guides changed" if quick else "one of four guides changed"
    claims = [
        Claim("nightly run, seconds", first.seconds, aim=40, better="less"),
        Claim("peak memory of all its processes, GB", first.peak / 1e9, aim=3, better="less"),
        Claim("second run on unchanged input, seconds", second.seconds, aim=7, better="less"),
        Claim("stages that the second run repeated", repeated, aim=0, better="less"),
        Claim(f"{condition}, seconds", third.seconds, "first night", first.seconds, aim=1, better="less"),
    ]
    claims += [Claim(f"{stage} alone, CPU seconds", cpu) for stage, cpu in stages.items()]
    for feeds_name, protocols in scores.items():
        for protocol, forms in protocols.items():
            for form, score in forms.items():
                if score["n"]:
                    claims += _accuracies(feeds_name, protocol, form, score)
    return claims


def change(feed: Path, folder: Path) -> Path:
    """Writes a copy of a guide without the programmes of every tenth title; returns its path."""
    tree = etree.parse(str(feed))
    titles = sorted({element.findtext("title") or "" for element in tree.iter("programme")})
    removed_titles = set(titles[::10])
    for element in tree.findall("programme"):
        if (element.findtext("title") or "") in removed_titles:
            tree.getroot().remove(element)
    target = folder / feed.name
    with gzip.open(target, "wb") as file:
        tree.write(file, encoding="utf-8", xml_declaration=True)
    return target


def _cpu_by_stage(home: Path, feeds: Sequence[Path]) -> dict[str, float]:
    """Runs the stages of a night one by one; returns the CPU seconds of each, largest first."""
    command = [sys.executable, "-m", "benchmarks.nights.plain_run", ONE_BY_ONE, str(home), *map(str, feeds)]
    done = subprocess.run(command, check=True, capture_output=True, encoding="utf-8")
    seconds = json.loads(done.stdout.splitlines()[-1])
    cpu = {name.removesuffix(", CPU"): value for name, value in seconds.items() if name.endswith(", CPU")}
    return dict(sorted(cpu.items(), key=lambda pair: -pair[1]))


def _scores(home: Path) -> dict[str, Any]:
    """Returns the scores of a nightly run by protocol and form (title_only, title_context)."""
    done = subprocess.run(
        [sys.executable, "-m", "flows", "scores", "--home", str(home), "--json"],
        check=True,
        capture_output=True,
        encoding="utf-8",
    )
    return json.loads(done.stdout)["protocols"]


def _accuracies(feeds: str, protocol: str, form: str, score: dict[str, Any]) -> Iterator[Claim]:
    """Compares our accuracy with that of the baselines on one held-out set.

    The set next_period has too few titles for a target if only the title is used.
    """
    about = f"{protocol}, {form} ({score['n']} titles)"
    bounds = {measure: tuple(score["knn"]["ci95"][measure]) for measure in ("accuracy", "precision_at_k")}
    aim = None if (protocol, form) == ("next_period", "title_only") else 1.0
    for rival in RIVALS:
        yield Claim(
            f"{feeds}: accuracy on {about}",
            score["knn"]["accuracy"],
            rival,
            score[rival]["accuracy"],
            interval=bounds["accuracy"],
            rival_interval=tuple(score[rival]["ci95"]["accuracy"]),
            aim=aim,
        )
    yield Claim(
        f"{feeds}: precision_at_10 on {about}",
        score["knn"]["precision_at_k"],
        interval=bounds["precision_at_k"],
        better=None,
    )


if __name__ == "__main__":
    sys.exit(run(measure_nightly, __doc__ or ""))
