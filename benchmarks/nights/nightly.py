"""Nightly run of four English guides with preset laptop: time, memory and scores; scores of two German
guides.

Measures wall time and memory of all processes of the run (the sum of resident sets, sampled every 0.2 s), the
scores of the model and of the baselines of the same run, and a second run on unchanged input.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.claims import SAMPLE, Claim, guides, run
from benchmarks.nights.night import run_night

STAGES = (
    "tokenize", "preprocess", "baselines", "train", "augment", "embed", "neighbours", "layout", "cluster",
    "evaluate", "draw",
)  # fmt: skip


def measure_nightly(quick: bool) -> Sequence[Claim]:
    """Measures all claims of this file."""
    feeds = [SAMPLE] if quick else guides("UK1", "US1", "AU1", "ZA1")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        first, second = run_night(home, feeds), run_night(home, feeds)
        scores = {"the sample guide" if quick else "four English guides": _scores(home)}
        if not quick:
            run_night(Path(folder) / "german", guides("magenta_de_2022-05", "magenta_de_2022-06"))
            scores["two German guides"] = _scores(Path(folder) / "german")
    repeated = sum(
        not any(stage in line.split() and "unchanged" in line for line in second.output.splitlines())
        for stage in STAGES
    )
    claims = [
        Claim("nightly run, seconds", first.seconds, aim=60 if quick else 180, better="less"),
        Claim("peak memory of all its processes, GB", first.peak / 1e9, aim=3, better="less"),
        Claim("second run on unchanged input, seconds", second.seconds, aim=15, better="less"),
        Claim("stages that the second run repeated", repeated, aim=0, better="less"),
    ]
    for feeds_name, protocols in scores.items():
        for protocol, forms in protocols.items():
            for form, score in forms.items():
                if score["n"]:
                    claims += _accuracies(feeds_name, protocol, form, score)
    return claims


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
    aims = (
        {("tfidf_knn", "accuracy"): 1.0, ("tfidf_knn", "precision_at_k"): 1.15}
        if protocol != "next_period"
        else {}
    )
    if form == "title_context":
        aims["tfidf_svm", "accuracy"] = aims["tfidf_svm_sentence", "accuracy"] = 1.0
    for rival in ("tfidf_knn", "tfidf_svm", "sentence_knn", "tfidf_svm_sentence"):
        for measure in ("accuracy", "precision_at_k"):
            if score[rival].get(measure) is not None:
                low, high = score["knn"]["ci95"][measure]
                shown = measure.replace("_at_k", "_at_10")
                name = f"{feeds}: {shown} on {protocol}, {form} ({score['n']} titles)"
                yield Claim(
                    name,
                    score["knn"][measure],
                    rival,
                    score[rival][measure],
                    interval=(low, high),
                    aim=aims.get((rival, measure)),
                )


if __name__ == "__main__":
    sys.exit(run(measure_nightly, __doc__ or ""))
