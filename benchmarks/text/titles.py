"""Time and memory of tokenize and preprocess on 300,000 synthetic titles, or ten million with --full.

A title has one to seven words from a vocabulary of 200,000 words, in which the r-th most frequent word has a
probability proportional to 1/(r + 10); one title in twenty has an episode number. Every title airs once, with
one of 40 categories that depends on its first words. Each stage of each size runs in a new process; memory is
the peak of that process and of its largest worker.
"""

import resource
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.claims import Claim, run
from benchmarks.processes import call_apart, peak, peak_of_workers
from benchmarks.stages import WITHOUT_SENTENCES, preprocess, tokenize
from storage.artifacts import Corpus, Guide
from storage.home.workspace import Workspace
from tasks.tokenize.settings import TokenizeSettings

WORDS, CATEGORIES, CHUNK = 200_000, 40, 100_000
LETTERS = np.array(list("etaoinshrdlucmfwygpbvk"))


def publish_synthetic_guide(home: Path, titles: int, seed: int = 1) -> Guide:
    """Publishes a Guide with ``titles`` airings of almost as many distinct titles; made in chunks."""
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
                empty_columns = {
                    field.name: pa.nulls(count, field.type) for field in SCHEMA if field.name not in columns
                }
                writer.write_table(
                    pa.table(
                        {field.name: (columns | empty_columns)[field.name] for field in SCHEMA}, schema=SCHEMA
                    )
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
        ("episode_systems", pa.list_(pa.string())),
        ("date", pa.string()),
        ("zone", pa.string()),
    ]
)


def to_corpus(home: Path, guide: Guide, settings: TokenizeSettings) -> Corpus:
    """Tokenizes and preprocesses a Guide without sentence vectors, as invented words have no meaning."""
    vocabulary = tokenize(home, guide, settings)
    return preprocess(home, guide, vocabulary, settings.splits.salt, WITHOUT_SENTENCES)


def measure_titles(sizes: Sequence[int]) -> Sequence[Claim]:
    """Measures CPU seconds and peak memory of both stages at each size.

    Also compares the time per title of the largest size with that of the smallest.
    """
    claims: list[Claim] = []
    seconds: dict[tuple[str, int], float] = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            home, settings = Path(folder), TokenizeSettings()
            guide, *_ = call_apart(run_stage, publish_synthetic_guide, home, size)
            vocabulary, *tokenizing = call_apart(run_stage, tokenize, home, guide, settings)
            stage = preprocess, home, guide, vocabulary, settings.splits.salt, WITHOUT_SENTENCES
            _, *preprocessing = call_apart(run_stage, *stage)
        for name, (cpu, gigabytes) in (("tokenize", tokenizing), ("preprocess", preprocessing)):
            seconds[name, size] = cpu
            about = f"{name}, {size:,} titles"
            claims.append(Claim(f"{about}: seconds of core time", cpu, better=None))
            claims.append(
                Claim(f"{about}: peak memory, GB", gigabytes, aim=1 if size < 1_000_000 else 2, better="less")
            )
    for stage in ("tokenize", "preprocess"):
        first, last = (seconds[stage, size] / size for size in (sizes[0], sizes[-1]))
        claims.append(
            Claim(
                f"{stage}: time a title at {sizes[-1]:,} titles over that at {sizes[0]:,}",
                last / first,
                aim=1.5,
                better="less",
            )
        )
    return claims


def run_stage(stage: Callable[..., Any], *arguments: Any) -> tuple[Any, float, float]:
    """Runs a stage in a separate process; returns its result, CPU seconds and peak GB, including imports.

    Memory is the larger peak of this process and of its largest worker.
    """
    before = _seconds()
    result = stage(*arguments)
    return result, _seconds() - before, max(peak(), peak_of_workers()) * 2**20 / 1e9


def _seconds() -> float:
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in usage)


def measure(quick: bool) -> Sequence[Claim]:
    """Measures all claims of this file except those of --full."""
    return measure_titles((10_000, 30_000) if quick else (100_000, 300_000))


if __name__ == "__main__":
    sys.exit(run(measure, __doc__ or "", lambda: measure_titles((1_000_000, 10_000_000))))
