"""The dual cached SVM: the optimum of liblinear for any cache, and the end of both threads."""

import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random
from sklearn.svm import LinearSVC

from storage.arrays import Ragged
from tasks.linear import dual_cached
from tasks.linear.blocks import PREFETCH_BLOCKS, SampleBlock, SampleBlocks, write_blocks
from tasks.linear.dual_cached import DualCachedSVM
from tasks.linear.dual_loops import SampleRows
from tasks.linear.sample_cache import load_rows

SAMPLES, FEATURES = 3000, 200
BLOCK_BYTES = 4096


def problem() -> tuple[csr_matrix, np.ndarray]:
    """Makes sparse unit rows, a few empty; labels −1 or 1 by a hyperplane, 10 % of them reversed."""
    rng = np.random.default_rng(0)
    rows = random(
        SAMPLES, FEATURES, density=0.05, format="csr", random_state=rng, data_rvs=rng.standard_normal
    )
    norms = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    scales = 1 / np.maximum(norms, 1e-9)
    scales[5:8] = 0
    rows = csr_matrix(rows.multiply(scales[:, None])).astype(np.float32)
    rows.eliminate_zeros()
    scores = rows @ rng.standard_normal(FEATURES) + 0.3
    return rows, np.where((scores > 0) ^ (rng.random(SAMPLES) < 0.1), 1, -1)


ROWS, SIGNS = problem()
LABELS = Ragged.from_rows([[0] if sign > 0 else [] for sign in SIGNS])


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> SampleBlocks:
    """Writes the problem to disk in 60 blocks."""
    return write_blocks(tmp_path_factory.mktemp("dual") / "samples", [(ROWS, LABELS)], FEATURES, BLOCK_BYTES)


def cache_bytes(blocks: SampleBlocks, share: float) -> int:
    """Returns memory for the reader and for a share of the file."""
    return (PREFETCH_BLOCKS + 1) * blocks.largest + int(share * blocks.file.stat().st_size)


def primal(weights: np.ndarray, intercept: float, cost: float) -> float:
    losses = np.maximum(0, 1 - SIGNS * (ROWS.astype(np.float64) @ weights + intercept))
    return float((weights @ weights + intercept**2) / 2 + cost * losses.sum())


def from_alphas(model: DualCachedSVM) -> np.ndarray:
    """Computes Σ α y x, with the intercept last."""
    pulls = model.alphas.astype(np.float64) * SIGNS
    return np.append(ROWS.astype(np.float64).T @ pulls, pulls.sum())


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("sample-reader")]


@pytest.mark.parametrize(
    ("cost", "share"),
    [(0.03, 0), (0.1, 0.1), (1.0, 0.1), (1.0, 2), pytest.param(10.0, 0.1, marks=pytest.mark.slow), (10.0, 2)],
)
def test_optimum_of_liblinear_whatever_the_cache_holds(
    blocks: SampleBlocks, cost: float, share: float
) -> None:
    reference = LinearSVC(loss="hinge", dual=True, C=cost, tol=1e-6, max_iter=100_000, random_state=0)
    reference.fit(ROWS.astype(np.float64), SIGNS)
    best = primal(reference.coef_[0], reference.intercept_[0], cost)
    model = DualCachedSVM(cost)
    steps = list(model.fit(blocks, cache_bytes=cache_bytes(blocks, share), tolerance=1e-3, passes=3000))
    found = primal(model.weights[:, 0].astype(np.float64), float(model.intercepts[0]), cost)
    assert best * (1 - 1e-6) <= found <= best * (1 + 1e-3)
    assert model.gap <= 1e-3
    dual = steps[-1].metrics["dual"]
    assert best * (1 - 2e-3) <= dual <= best * (1 + 1e-6)
    scores = model.decision_function(ROWS)
    assert scores.shape == (SAMPLES, 1) and scores.dtype == np.float32
    theirs = reference.decision_function(ROWS)
    assert ((scores[:, 0] > 0) == (theirs > 0)).mean() > 0.98


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_weights_are_the_sum_over_alphas_at_any_time(blocks: SampleBlocks, share: float) -> None:
    model = DualCachedSVM(0.3)
    previous = 0.0
    for progress in model.fit(blocks, cache_bytes=cache_bytes(blocks, share), tolerance=1e-3, passes=8):
        assert model.alphas.min() >= 0 and model.alphas.max() <= np.float32(0.3)
        expected = from_alphas(model)
        assert np.abs(model._weights - expected).max() < 1e-9 * (1 + np.abs(expected).max())
        dual = float(model.alphas.sum(dtype=np.float64) - expected @ expected / 2)
        assert progress.metrics["dual"] == pytest.approx(dual, rel=1e-9)
        assert dual >= previous * (1 - 1e-9)  # every step of coordinate descent gains
        previous = dual


def test_the_gap_bounds_the_distance_to_the_optimum(
    blocks: SampleBlocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    cost = 1.0
    reference = LinearSVC(loss="hinge", dual=True, C=cost, tol=1e-6, max_iter=100_000, random_state=0)
    reference.fit(ROWS.astype(np.float64), SIGNS)
    best = primal(reference.coef_[0], reference.intercept_[0], cost)
    model, begun, primals = DualCachedSVM(cost), [], []

    def watched(block: SampleBlock, weights: np.ndarray, squared: bool) -> tuple[SampleRows, float]:
        if block.number == 0:
            begun.append(weights.copy())
        return load_rows(block, weights, squared)

    monkeypatch.setattr(dual_cached, "load_rows", watched)
    for progress in model.fit(blocks, cache_bytes=cache_bytes(blocks, 0.1), tolerance=0.01):
        if "gap" in progress.metrics:
            primals.append(progress.metrics["primal"])
            expected = primal(begun[-1][:-1], begun[-1][-1], cost)
            assert primals[-1] == pytest.approx(expected, rel=1e-4)
            assert progress.metrics["dual"] <= best * (1 + 1e-6) <= primals[-1] * (1 + 2e-6)
    assert len(primals) >= 2 and model.gap <= 0.01
    exposed = primal(model.weights[:, 0].astype(np.float64), float(model.intercepts[0]), cost)
    assert exposed == pytest.approx(min(primals), rel=1e-5) and exposed <= best * 1.0102


def test_cached_samples_take_the_bytes_given_and_the_useless_leave(blocks: SampleBlocks) -> None:
    """After training, memory holds what is free to move, though it never held more than its share."""
    kept = []

    class Watched(dual_cached.SampleCache):
        def __init__(self, *given: object) -> None:
            super().__init__(*given)  # type: ignore[arg-type]
            kept.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dual_cached, "SampleCache", Watched)
        model = DualCachedSVM(1.0)
        for _ in model.fit(blocks, cache_bytes=cache_bytes(blocks, 0.3), tolerance=1e-4):
            cache = kept[0]
            rows = cache.rows
            held = rows.samples[: cache.count]
            assert len(set(held)) == len(held) and set(held) == set(np.flatnonzero(cache.is_cached))
            assert rows.offsets[cache.count] <= len(rows.ids)
    assert sum(array.nbytes for array in rows) <= 0.3 * blocks.file.stat().st_size
    for row in range(50):  # rows moved about are still the samples that they were
        ids, values = (array[slice(*rows.offsets[row : row + 2])] for array in (rows.ids, rows.values))
        assert ids.tolist() == ROWS[rows.samples[row]].indices.tolist()
        assert values.tolist() == ROWS[rows.samples[row]].data.tolist()
        assert rows.labels[row] == SIGNS[rows.samples[row]]
    free = np.flatnonzero((model.alphas > 0) & (model.alphas < 1))
    assert 20 < len(free) < 0.2 * SAMPLES and cache.is_cached[free].mean() > 0.95
    assert cache.is_cached.mean() <= 0.3


def test_a_saved_model_continues_training(blocks: SampleBlocks, tmp_path: Path) -> None:
    model = DualCachedSVM(0.5)
    for progress in model.fit(blocks, cache_bytes=cache_bytes(blocks, 0.1), tolerance=1e-3):
        if progress.step == 2 * len(blocks) + 7:  # within a pass
            break
    before = progress.metrics["dual"]
    model.save(tmp_path / "model")
    loaded = DualCachedSVM.load(tmp_path / "model")
    assert np.array_equal(loaded.alphas, model.alphas) and np.array_equal(loaded._weights, model._weights)
    assert np.array_equal(loaded.decision_function(ROWS), model.decision_function(ROWS))
    steps = list(loaded.fit(blocks, cache_bytes=cache_bytes(blocks, 0.1), tolerance=1e-4))
    assert steps[0].metrics["dual"] >= before * (1 - 1e-9) and loaded.gap <= 1e-4
    assert np.abs(loaded._weights - from_alphas(loaded)).max() < 1e-9 * (1 + np.abs(loaded._weights).max())


def test_another_file_is_refused(blocks: SampleBlocks, tmp_path: Path) -> None:
    model = DualCachedSVM()
    next(model.fit(blocks, cache_bytes=cache_bytes(blocks, 0)))
    other = write_blocks(tmp_path, [(ROWS[::-1], LABELS)], FEATURES, BLOCK_BYTES)
    with pytest.raises(ValueError, match="is not the file that this model was trained on"):
        next(model.fit(other, cache_bytes=cache_bytes(other, 0)))


class Failing(SampleBlocks):
    """Blocks of which only the first five can be read."""

    def read(self, number: int) -> SampleBlock:
        if number == 5:
            raise OSError("the disk is gone")
        return super().read(number)


def test_an_error_of_the_reader_is_raised(blocks: SampleBlocks) -> None:
    steps = []
    with pytest.raises(OSError, match="the disk is gone"):
        steps.extend(DualCachedSVM().fit(Failing(blocks.file.parent), cache_bytes=cache_bytes(blocks, 0.1)))
    assert not readers()


def test_a_file_that_is_truncated_while_it_is_read(tmp_path: Path) -> None:
    blocks = write_blocks(tmp_path, [(ROWS, LABELS)], FEATURES, BLOCK_BYTES)
    model = DualCachedSVM()
    steps = model.fit(blocks, cache_bytes=cache_bytes(blocks, 0.1), tolerance=1e-9)
    next(steps)
    os.truncate(blocks.file, 100_000)
    with pytest.raises(ValueError, match=r"block .* is damaged"):
        list(steps)
    assert not readers()
    assert np.abs(model._weights - from_alphas(model)).max() < 1e-9


def functions(frame: FrameType | None) -> list[str]:
    """Returns the names of the functions on the stack of a thread."""
    return [frame.f_code.co_name, *functions(frame.f_back)] if frame else []


class Interrupting(SampleBlocks):
    """A disk that is interrupted by Ctrl-C while it reads a block for the ``interrupt_at``-th time."""

    interrupt_at, reads = 0, 0

    def read(self, number: int) -> SampleBlock:
        self.reads += 1
        if self.reads == self.interrupt_at:
            trainer = threading.main_thread().ident or 0
            while self.reads == 1 and "result" not in functions(sys._current_frames()[trainer]):
                pass  # it waits for this block in a moment
            signal.pthread_kill(trainer, signal.SIGINT)
        return super().read(number)


def test_an_interrupt_ends_both_threads(blocks: SampleBlocks) -> None:
    """While the trainer waits for the first block, and in the second pass; the model is whole, trains on."""
    model = DualCachedSVM(1.0)
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for at, share in ((1, 0.0), (90, 0.1)):
            disk = Interrupting(blocks.file.parent)
            disk.interrupt_at = at
            with pytest.raises(KeyboardInterrupt):
                list(model.fit(disk, cache_bytes=cache_bytes(blocks, share), tolerance=1e-9))
            assert disk.reads >= at and not readers()
            assert np.abs(model._weights - from_alphas(model)).max() < 1e-9
    finally:
        signal.signal(signal.SIGINT, previous)
    list(model.fit(blocks, cache_bytes=cache_bytes(blocks, 0.1), tolerance=1e-3))
    assert model.gap <= 1e-3


def test_leaving_a_fit_ends_its_reader(blocks: SampleBlocks) -> None:
    steps = DualCachedSVM().fit(blocks, cache_bytes=cache_bytes(blocks, 0.1))
    next(steps)
    assert readers()
    steps.close()
    assert not readers()


def test_rows_without_features_and_one_class_alone(tmp_path: Path) -> None:
    """Only the intercept can tell: w = 0, b = 1 is the optimum."""
    rows = csr_matrix((40, 3))
    blocks = write_blocks(tmp_path, [(rows, Ragged.from_rows([[0]] * 40))], 3, 64)
    model = DualCachedSVM(1.0)
    list(model.fit(blocks, cache_bytes=4096, tolerance=1e-6))
    assert model.gap <= 1e-6 and model.intercepts[0] == pytest.approx(1) and not model.weights.any()
    assert model.decision_function(csr_matrix((0, 3))).shape == (0, 1)


@pytest.mark.parametrize("cost", [0.0, -1.0, np.nan, np.inf])
def test_a_cost_must_be_above_zero(cost: float) -> None:
    with pytest.raises(ValueError, match=r"cost is .*; expected a number above 0"):
        DualCachedSVM(cost)


def test_a_cache_smaller_than_what_the_reader_holds_is_refused(blocks: SampleBlocks) -> None:
    with pytest.raises(ValueError, match=r"cache_bytes is 100, less than 3 blocks of .* bytes"):
        next(DualCachedSVM().fit(blocks, cache_bytes=100))


def test_features_beyond_the_weights_are_refused(blocks: SampleBlocks) -> None:
    model = DualCachedSVM()
    next(model.fit(blocks, cache_bytes=cache_bytes(blocks, 0)))
    wide = csr_matrix(([1.0], ([0], [FEATURES])), shape=(1, FEATURES + 1))
    with pytest.raises(ValueError, match=f"row 0 holds feature {FEATURES}"):
        model.decision_function(wide)
