"""Linear SVM on data of ten times the cache: cached dual steps beside a reader without a cache.

Samples are documents of two topics each, with words drawn by Zipf's law, log tf-idf and unit norm. The label
is the class of the first topic; one label in a hundred is inverted. All solvers read the same blocks by a
thread that prefetches, from a disk throttled to the rate of a network disk (pages are removed from the page
cache after reading, so that reads are real). The pass-by-pass reader is the same compiled step without a
cache.

Seconds are measured from the first read until the primal objective is within 1 % of the optimum: weights are
copied every eighth of a pass, and their objectives are computed afterwards. A rival that has not reached this
after the disk time of ``PASSES`` passes, or four times our time, counts as reaching it then; its row has the
remaining difference.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy.sparse import csr_matrix, vstack

from benchmarks.claims import Claim
from benchmarks.processes import call_apart, measure_apart
from storage.arrays import Ragged, offsets_of
from storage.artifacts import Progress
from tasks.linear.blocks import PREFETCH_BLOCKS, SampleBlock, SampleBlocks, write_blocks
from tasks.linear.dual_cached import DualCachedSVM
from tasks.linear.sample_cache import load_rows

FEATURES, WORDS, TOPICS, TOPIC_WORDS = 250_000, 100, 100, 2000
SHARE, RATE, PASSES, WITHIN, TOLERANCE = 0.1, 150e6, 30, 0.01, 1e-3


def claims(quick: bool) -> Sequence[Claim]:
    """Measures all claims of this file."""
    results: list[Claim] = []
    with TemporaryDirectory() as name:
        folder = Path(name) / "samples"
        blocks = call_apart(make_samples, folder, 80_000 if quick else 540_000, threads=1)
        size, disk = blocks.file.stat().st_size, disk_rate(blocks)
        label = f"{size / 1e6:.0f} MB, cache {SHARE * size / 1e6:.0f} MB"
        results.append(Claim("disk by blocks, MB/s", disk / 1e6, better=None))
        for cost in (0.1, 1.0, 10.0):
            ours = measure_apart(prepare_ours, folder, cost, RATE, SHARE, threads=1).result
            optimum, passes, gap, seconds = ours["dual"], ours["passes"], ours["gap"], ours["seconds"]
            name = f"{label}, {RATE / 1e6:.0f} MB/s, C = {cost:g}"
            results.append(Claim(f"gap at the end, {name}", gap, better=None))
            results.append(Claim(f"passes over the disk to that gap, {name}", passes, better=None))
            limit = max(PASSES * size / RATE, 4 * seconds)
            arguments = folder, cost, RATE, 0.0, optimum, limit
            slow = measure_apart(prepare_ours, *arguments, rival=True, threads=1).result
            results.append(race(name, seconds, "pass by pass", slow, 1 / 3))
        fast = measure_apart(prepare_ours, folder, 1.0, 1e12, SHARE, threads=1).result
        arguments = (folder, 1.0, 1e12, 0.0, fast["dual"], 30 * fast["seconds"])
        slow = measure_apart(prepare_ours, *arguments, rival=True, threads=1).result
        results.append(race(f"{label}, disk as it is, C = 1", fast["seconds"], "pass by pass", slow, None))
        liblinear = measure_apart(prepare_liblinear, folder, 1.0, rival=True, threads=1)
        results.append(
            Claim(
                f"objective, {label}, C = 1",
                fast["objective"],
                "LinearSVC, all in memory",
                liblinear.result,
                aim=1.001,
                better="less",
            )
        )
    return results


def race(name: str, seconds: float, rival: str, result: dict[str, float], aim: float | None) -> Claim:
    """Makes a claim that compares our seconds with the seconds of a rival."""
    if result["short"] > WITHIN:
        rival += f" (by then {100 * result['short']:.2g} % short)"
    return Claim(
        f"seconds to 1 % of the optimum, {name}", seconds, rival, result["seconds"], aim=aim, better="less"
    )


class Throttled(SampleBlocks):
    """Blocks of samples on a simulated disk that reads at most ``rate`` bytes per second."""

    rate = 1e12

    def read(self, number: int) -> SampleBlock:
        """Reads a block in the time that the disk would take."""
        started = time.perf_counter()
        block = super().read(number)
        length = block.ids.nbytes + block.values.nbytes + 5 * len(block.labels)
        time.sleep(max(0.0, started + length / self.rate - time.perf_counter()))
        return block


def prepare_ours(
    folder: Path, cost: float, rate: float, share: float, optimum: float = 0.0, limit: float = np.inf
) -> Callable[[], dict[str, float]]:
    """Prepares a training of our SVM, either to find the optimum (to ``TOLERANCE``) or as a competitor."""
    blocks = open_throttled(folder, rate)
    least = (PREFETCH_BLOCKS + 1) * blocks.largest
    size = blocks.file.stat().st_size
    compile_loops(blocks)

    def call() -> dict[str, float]:
        model = DualCachedSVM(cost)
        steps = model.fit(
            blocks,
            cache_bytes=least + int(share * size),
            tolerance=WITHIN / 2 if optimum else TOLERANCE,
            passes=10_000,
        )
        progress_list: list[Progress] = []

        def weights() -> Iterator[np.ndarray]:
            for step in steps:
                progress_list.append(step)
                yield model._weights

        snapshots, everything = keep(weights(), len(blocks), limit), load(folder)
        dual = progress_list[-1].metrics["dual"]
        solution = np.append(model.weights, model.intercepts).astype(np.float64)
        return {
            "gap": model.gap,
            "dual": dual,
            "passes": len(progress_list) / len(blocks),
            "objective": objective(everything, solution, cost),
            **arrival(everything, snapshots, cost, optimum or dual),
        }

    return call


def prepare_liblinear(folder: Path, cost: float) -> Callable[[], float]:
    """Prepares a training by liblinear with all samples in memory, which returns the primal objective."""
    from sklearn.svm import LinearSVC

    everything = load(folder)
    rows = vstack([to_csr(block) for block in everything]).astype(np.float64).tocsr()
    labels = np.concatenate([block.labels for block in everything])

    def call() -> float:
        model = LinearSVC(loss="hinge", C=cost, tol=1e-3, max_iter=10_000, random_state=0)
        model.fit(rows, labels)
        return objective(everything, np.append(model.coef_, model.intercept_), cost)

    return call


def keep(weights: Iterator[np.ndarray], blocks: int, limit: float) -> list[tuple[float, np.ndarray]]:
    """Records the seconds and a copy of the weights eight times per pass, until ``limit`` seconds."""
    snapshots, started = [], time.perf_counter()
    for step, current in enumerate(weights, start=1):
        seconds = time.perf_counter() - started
        over = seconds > limit
        if over or step % max(1, blocks // 8) == 0:
            snapshots.append((seconds, current.astype(np.float32)))
        if over:
            break
    return snapshots


def arrival(
    blocks: Sequence[SampleBlock], snapshots: Sequence[tuple[float, np.ndarray]], cost: float, optimum: float
) -> dict[str, float]:
    """Returns the seconds until the objective is within 1 % of the optimum, and the remaining difference.

    If the objective never reaches this, returns all recorded seconds.
    """
    short = np.inf
    for seconds, weights in snapshots:
        short = min(short, objective(blocks, weights.astype(np.float64), cost) / optimum - 1)
        if short <= WITHIN:
            return {"seconds": seconds, "short": short}
    return {"seconds": snapshots[-1][0], "short": short}


def objective(blocks: Sequence[SampleBlock], weights: np.ndarray, cost: float) -> float:
    """Returns the primal objective of an SVM: ½‖w‖² + C Σ hinge loss."""
    return float(weights @ weights) / 2 + cost * sum(load_rows(block, weights)[1] for block in blocks)


def compile_loops(blocks: SampleBlocks) -> None:
    """Compiles all loops before the measurement by training on three blocks with a cache for two."""
    cache_bytes = (PREFETCH_BLOCKS + 3) * blocks.largest
    for _ in zip(range(4), DualCachedSVM().fit(blocks, cache_bytes=cache_bytes)):
        pass


def open_throttled(folder: Path, rate: float) -> Throttled:
    blocks = Throttled(folder)
    blocks.rate = rate
    return blocks


def load(folder: Path) -> list[SampleBlock]:
    blocks = SampleBlocks(folder)
    return [blocks.read(number) for number in range(len(blocks))]


def to_csr(block: SampleBlock) -> csr_matrix:
    return csr_matrix((block.values, block.ids, block.offsets), shape=(len(block.labels), FEATURES))


def disk_rate(blocks: SampleBlocks) -> float:
    """Measures the bytes per second of reading blocks from disk, without the page cache."""
    started = time.perf_counter()
    for number in range(len(blocks)):
        blocks.read(number)
    return blocks.file.stat().st_size / (time.perf_counter() - started)


def make_samples(folder: Path, count: int) -> SampleBlocks:
    """Writes ``count`` synthetic documents."""
    return write_blocks(folder, _documents(count), FEATURES)


def _documents(count: int) -> Iterator[tuple[csr_matrix, Ragged]]:
    world, rng = np.random.default_rng(0), np.random.default_rng(1)
    frequency = 1 / (np.arange(FEATURES) + 10.0)
    common = np.cumsum(frequency / frequency.sum())
    topics = np.searchsorted(common, world.random((TOPICS, TOPIC_WORDS))).astype(np.int32)
    word_shares = np.cumsum(1 / (np.arange(TOPIC_WORDS) + 5.0))
    positive = world.random(TOPICS) < 0.5
    rarity = np.log(frequency.sum() / frequency).astype(np.float32)
    for begin in range(0, count, 20_000):
        shape = (min(20_000, count - begin), WORDS)
        first_topics, second_topics = rng.integers(0, TOPICS, (2, shape[0], 1))
        word = np.searchsorted(word_shares, rng.random(shape) * word_shares[-1])
        source = rng.random(shape)  # per word: from the first topic, the second, or any document
        ids = np.where(source < 0.35, topics[first_topics, word], topics[second_topics, word])
        ids = np.where(source < 0.5, ids, np.searchsorted(common, rng.random(shape))).astype(np.int32)
        ends = np.arange(0, ids.size + 1, WORDS)
        rows = csr_matrix((np.ones(ids.size, np.float32), ids.ravel(), ends), shape=(shape[0], FEATURES))
        rows.sum_duplicates()
        rows.data = (1 + np.log(rows.data)) * rarity[rows.indices]
        norms = np.sqrt(np.add.reduceat(rows.data**2, rows.indptr[:-1]))
        rows.data /= np.repeat(norms, np.diff(rows.indptr))
        signs = positive[first_topics[:, 0]] ^ (rng.random(shape[0]) < 0.01)
        yield rows, Ragged(offsets_of(signs.astype(np.int64)), np.zeros(int(signs.sum()), np.int32))
