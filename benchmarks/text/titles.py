"""Synthetic titles, up to 300,000, and with --full a million and ten: the tokenize and preprocess stages in
bounded memory and linear time.

Titles are of Zipf words: the r-th commonest word comes with a probability falling as 1/(r + 10), one to seven
words a title, of a vocabulary of 200,000 words; one title in twenty carries an episode's mark. Every title
airs once, with one of 40 categories that its first words suggest. Each size is run in a fresh process per
stage; memory is the peak of that process and of its largest worker.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.claims import Claim, table
from storage.artifacts import Corpus, Guide, Vocabulary
from storage.home.workspace import Workspace
from tasks.preprocess.settings import PreprocessSettings
from tasks.sentences import NoSentences
from tasks.sentences.settings import SentenceSettings
from tasks.tokenize.settings import TokenizeSettings

WORDS, CATEGORIES, CHUNK = 200_000, 40, 100_000
# Invented words have no meaning to encode; benchmarks/text/sentences.py measures that.
WITHOUT_SENTENCES = PreprocessSettings(sentences=SentenceSettings(encoder=NoSentences()))
LETTERS = np.array(list("etaoinshrdlucmfwygpbvk"))


def publish_synthetic_guide(home: Path, titles: int, seed: int = 1) -> Guide:
    """A Guide of that many airings, of almost as many distinct titles; made in chunks."""
    rng = np.random.default_rng(seed)
    words = np.array(
        [
            "".join(LETTERS[rng.integers(0, len(LETTERS), length)]).capitalize()
            for length in rng.integers(3, 10, WORDS)
        ],
        dtype=object,
    )
    chances = np.cumsum(1 / (np.arange(WORDS) + 10))
    chances /= chances[-1]
    start = np.datetime64("2025-03-01T00:00", "us")
    with Workspace(home).publishing(Guide, f"synthetic{titles}") as draft:
        with pq.ParquetWriter(draft.folder / "programmes.parquet", SCHEMA, compression="zstd") as writer:
            for begin in range(0, titles, CHUNK):
                count = min(CHUNK, titles - begin)
                lengths = 1 + rng.binomial(6, 0.35, count)
                ids = np.searchsorted(chances, rng.random(int(lengths.sum())))
                parts = np.split(words[ids], np.cumsum(lengths)[:-1])
                marks = rng.random(count) < 0.05
                names = [
                    " ".join(part) + (f" ({begin % 97 + 2}/99)" if mark else "")
                    for part, mark in zip(parts, marks, strict=True)
                ]
                category = ids[np.cumsum(lengths) - lengths] % CATEGORIES
                when = start + np.sort(rng.integers(0, 14 * 1440, count)) * np.timedelta64(60_000_000, "us")
                columns = {
                    "source": pa.array(["synthetic"] * count),
                    "channel": pa.array([f"channel{number}" for number in rng.integers(0, 300, count)]),
                    "start": pa.array(when),
                    "stop": pa.array(when + np.timedelta64(1_800_000_000, "us")),
                    "title": pa.array(names),
                    "categories": pa.array(
                        [
                            [f"genre {chr(97 + number % 26)}{chr(97 + number // 26)}"]
                            for number in category.tolist()
                        ]
                    ),
                }
                columns["zone"] = pa.array(["UTC"] * count)
                empty = {
                    field.name: pa.nulls(count, field.type) for field in SCHEMA if field.name not in columns
                }
                writer.write_table(
                    pa.table({field.name: (columns | empty)[field.name] for field in SCHEMA}, schema=SCHEMA)
                )
        channels = {
            "source": ["synthetic"] * 300,
            "channel": [f"channel{number}" for number in range(300)],
            "name": [f"Channel {number}" for number in range(300)],
        }
        pq.write_table(pa.table(channels), draft.folder / "channels.parquet")
        draft.counts["programmes"] = titles
    return draft.artifact


SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("channel", pa.string()),
        ("start", pa.timestamp("us")),
        ("stop", pa.timestamp("us")),
        ("title", pa.string()),
        ("title_language", pa.string()),
        ("sub_title", pa.string()),
        ("categories", pa.list_(pa.string())),
        ("episode_numbers", pa.list_(pa.string())),
        ("date", pa.string()),
        ("zone", pa.string()),
    ]
)


def to_corpus(home: Path, guide: Guide, settings: TokenizeSettings) -> Corpus:
    """Both stages, without a Prefect run."""
    return preprocess(home, guide, tokenize(home, guide, settings), settings)


def tokenize(home: Path, guide: Guide, settings: TokenizeSettings) -> Vocabulary:
    """The stage tokenize, without a Prefect run."""
    from prefect.logging import disable_run_logger

    from tasks.tokenize.task import tokenize

    with disable_run_logger():
        return tokenize.fn(str(home), guide, settings)


def preprocess(home: Path, guide: Guide, vocabulary: Vocabulary, settings: TokenizeSettings) -> Corpus:
    """The stage preprocess, without a Prefect run."""
    from prefect.logging import disable_run_logger

    from tasks.preprocess.task import preprocess

    with disable_run_logger():
        return preprocess.fn(str(home), guide, vocabulary, settings.splits.salt, WITHOUT_SENTENCES)


def measure_titles(sizes: Sequence[int]) -> Sequence[Claim]:
    """Seconds of core time and peak memory of both stages at each size; how much more a title of the largest
    takes than one of the smallest.
    """
    claims: list[Claim] = []
    seconds: dict[tuple[str, int], float] = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as home:
            for stage in ("guide", "tokenize", "preprocess"):
                done = subprocess.run(
                    [sys.executable, "-m", "benchmarks.text.titles", "--stage", stage, home, str(size)],
                    check=True,
                    stdout=subprocess.PIPE,
                    encoding="utf-8",
                )
                found = json.loads(done.stdout.splitlines()[-1])
                seconds[stage, size] = found["seconds"]
                if stage != "guide":
                    claims.append(
                        Claim(
                            name=f"{stage}, {size:,} titles: seconds of core time",
                            value=found["seconds"],
                            better=None,
                        )
                    )
                    claims.append(
                        Claim(
                            name=f"{stage}, {size:,} titles: peak memory, GB",
                            value=found["peak"],
                            aim=2,
                            better="less",
                        )
                    )
    for stage in ("tokenize", "preprocess"):
        first, last = (seconds[stage, size] / size for size in (sizes[0], sizes[-1]))
        claims.append(
            Claim(
                name=f"{stage}: time a title at {sizes[-1]:,} titles over that at {sizes[0]:,}",
                value=last / first,
                aim=1.5,
                better="less",
            )
        )
    return claims


def run_stage(stage: str, home: Path, titles: int) -> dict[str, float]:
    """One stage in this process: seconds of core time and GB at the peak, imports included in the latter."""
    before = _seconds()
    guide, settings = (
        Guide(path=f"artifacts/guide/synthetic{titles}", digest="", counts={}),
        TokenizeSettings(),
    )
    if stage == "guide":
        publish_synthetic_guide(home, titles)
    elif stage == "tokenize":
        made = tokenize(home, guide, settings)
        (home / "vocabulary.json").write_text(
            json.dumps({"path": made.path, "digest": made.digest, "counts": made.counts}), encoding="utf-8"
        )
    else:
        preprocess(
            home,
            guide,
            Vocabulary(**json.loads((home / "vocabulary.json").read_text(encoding="utf-8"))),
            settings,
        )
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {"seconds": _seconds() - before, "peak": peak * 1024 / 1e9}


def _seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="under 60 s: smaller data")
    parser.add_argument("--full", action="store_true", help="one million and ten: an hour")
    parser.add_argument("--json", action="store_true", help="print JSON, for other programs")
    parser.add_argument("--sizes", type=int, nargs="+", help="numbers of titles, rising")
    parser.add_argument(
        "--stage", nargs=3, metavar=("STAGE", "HOME", "TITLES"), help="one stage in this process"
    )
    given = parser.parse_args()
    if given.stage:
        print(json.dumps(run_stage(given.stage[0], Path(given.stage[1]), int(given.stage[2]))))
        return 0
    claims = measure_titles(
        given.sizes
        or (
            (10_000, 30_000) if given.quick else (1_000_000, 10_000_000) if given.full else (100_000, 300_000)
        )
    )
    print(
        json.dumps([{**claim.__dict__, "ratio": claim.ratio, "met": claim.met} for claim in claims], indent=1)
        if given.json
        else table(claims)
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
