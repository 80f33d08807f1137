"""Nearest titles and sentence vectors of synthetic titles by one and by two Dask or Ray workers of one core.

Rounds alternate between one and two workers; figures are medians. Wall time includes starting the workers,
but not building the index, which this process does once. CPU seconds are those of the busiest worker, sampled
twice a second; unlike wall time, they hardly depend on other work on the machine. The results of one and two
workers must be equal. --quick uses a tenth of the titles.
"""

import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.claims import Claim, is_installed, run
from benchmarks.training.synthetic import make_synthetic_corpus
from storage.arrays import Ragged, unit_rows
from storage.sentences import SentenceStore, text_keys
from tasks.neighbours.index import Approximate
from tasks.neighbours.pieces import search_pieces
from tasks.neighbours.rescoring import empty_neighbours
from tasks.pool_settings import PoolSettings
from tasks.sentences import UniversalSentenceEncoder
from tasks.sentences.encoding import encode_new

TITLES, TEXTS, DIM, K, ROUNDS, AIM = 200_000, 100_000, 128, 25, 3, 1.7
SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprst" for vowel in "aeiou"]


def time_workers(compute: Callable[[], Any]) -> tuple[float, float, Any]:
    """Returns wall seconds, CPU seconds of the busiest process that it started, and the result of a call."""
    cpu: dict[int, float] = {}
    ended = threading.Event()

    def sample() -> None:
        while not ended.wait(0.5):
            for process in psutil.Process().children(recursive=True):
                try:
                    times = process.cpu_times()
                except psutil.NoSuchProcess:
                    continue
                cpu[process.pid] = times.user + times.system

    sampler = threading.Thread(target=sample)
    sampler.start()
    begun = time.perf_counter()
    try:
        result = compute()
        return time.perf_counter() - begun, max(cpu.values()), result
    finally:
        ended.set()
        sampler.join()


def write_vectors(folder: Path, titles: int) -> tuple[Path, list[str]]:
    """Writes unit vectors of titles, sums of random word vectors; returns the file and the texts."""
    words = Ragged.open(make_synthetic_corpus(folder / "corpus", titles, seed=0), "tokens")
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(int(words.values.max()) + 1, DIM)).astype(np.float32)
    vectors = unit_rows(np.add.reduceat(rows[words.values], words.offsets[:-1]))
    np.save(folder / "full.npy", vectors)
    names = ["".join(rng.choice(SYLLABLES, size=rng.integers(2, 5))) for _ in rows]
    return folder / "full.npy", [" ".join(names[word] for word in words[title]) for title in range(titles)]


def find_nearest(index: Approximate, vectors: Path, pool: PoolSettings) -> np.ndarray:
    """Returns the nearest titles of all titles."""
    ids, cosines = empty_neighbours(len(index.vectors), K)
    with tempfile.TemporaryDirectory() as work:
        for _ in search_pieces(index, vectors, Path(work), pool, ids, cosines):
            pass
    return ids


def encode(texts: list[str], pool: PoolSettings) -> np.ndarray:
    """Returns the sentence vectors of all texts."""
    strategy = UniversalSentenceEncoder()
    encoder = strategy.open()
    with tempfile.TemporaryDirectory() as home:
        store = SentenceStore(Path(home), encoder.identity, encoder.dim)
        for _ in encode_new(store, strategy, lambda: [texts], pool):
            pass
        return store.take(text_keys(texts))


def measure(quick: bool) -> list[Claim]:
    """Measures both stages with each pool that is installed."""
    claims = []
    with tempfile.TemporaryDirectory() as name:
        vectors, texts = write_vectors(Path(name), TITLES // 10 if quick else TITLES)
        texts = texts[: len(texts) * TEXTS // TITLES]
        begun = time.process_time()
        index = Approximate(np.load(vectors))
        claims.append(Claim("index of the titles, CPU s", time.process_time() - begun, better=None))
        stages = {
            f"nearest titles of {len(index.vectors):,}": lambda pool: find_nearest(index, vectors, pool),
            f"sentence vectors of {len(texts):,} titles": lambda pool: encode(texts, pool),
        }
        for pool in [pool for pool in ("dask", "ray") if is_installed(pool)]:
            for stage, compute in stages.items():
                walls, cpus, results = {1: [], 2: []}, {1: [], 2: []}, []
                for workers in (1, 2) * (1 if quick else ROUNDS):
                    settings: Any = PoolSettings(pool=pool, workers=workers)  # pyright: ignore[reportArgumentType]
                    wall, cpu, result = time_workers(lambda: compute(settings))  # noqa: B023
                    walls[workers].append(wall)
                    cpus[workers].append(cpu)
                    results.append(result)
                    print(f"{stage}, {pool}, {workers}: {wall:.1f} s, {cpu:.1f} CPU s", file=sys.stderr)
                assert all(np.array_equal(result, results[0]) for result in results)
                for kind, seconds in (("wall", walls), ("CPU", cpus)):
                    one, two = (statistics.median(seconds[workers]) for workers in (1, 2))
                    claims.append(Claim(f"{stage}, {pool}, {kind} s of one worker", one, better=None))
                    claims.append(Claim(f"{stage}, {pool}, {kind} s, one / two workers", one / two, aim=AIM))
    return claims


if __name__ == "__main__":
    sys.exit(run(measure, __doc__ or ""))
