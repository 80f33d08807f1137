"""Logistic regression with L1: speed, objective and share of zeros beside scikit-learn.

Samples have the shape of RCV1: 100,000 samples of 50,000 features, 72 non-zero each, the r-th most frequent
feature with a probability proportional to 1 / (r + 10), TF-IDF of unit norm; labels follow a logistic model
of a tenth of the features. The objective is mean log loss + ‖w‖₁ / samples, without a penalty on the
intercept. Every pass visits the samples in a new order, ours in chunks of 32; SGDClassifier without shuffling
has a separate row.
"""

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.claims import Claim
from benchmarks.processes import Measured, measure_apart
from storage.arrays import Ragged
from tasks.linear.ftrl import Ftrl
from tasks.linear.logistic import SparseLogistic
from tasks.linear.proximal import ProximalSgd

PASSES = 10
SIZES = {False: (100_000, 50_000, 75), True: (10_000, 5_000, 75)}  # samples, features, features per sample


def alpha(quick: bool) -> float:
    """Returns the weight of the penalty that corresponds to C = 1 in scikit-learn."""
    return 1 / SIZES[quick][0]


def samples(quick: bool) -> tuple[csr_matrix, np.ndarray]:
    """Returns the samples as float32 rows, and whether each has the label."""
    count, features, mean = SIZES[quick]
    rng = np.random.default_rng(0)
    lengths = np.maximum(rng.poisson(mean, count), 1)
    chances = np.cumsum(1 / (np.arange(features) + 10))
    ids = np.searchsorted(chances, rng.random(int(lengths.sum())) * chances[-1])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    rows = csr_matrix((np.ones(len(ids), np.float32), ids, offsets), shape=(count, features))
    rows.sum_duplicates()
    rarity = 1 + np.log(count / (1 + np.bincount(rows.indices, minlength=features)))
    rows.data = (1 + np.log(rows.data)) * rarity[rows.indices]
    norms = np.sqrt(np.add.reduceat(rows.data**2, rows.indptr[:-1]))
    rows.data = (rows.data / np.repeat(norms, np.diff(rows.indptr))).astype(np.float32)
    margins = rows @ (rng.normal(0, 6, features) * (rng.random(features) < 0.1))
    return rows, rng.random(count) < 1 / (1 + np.exp(np.median(margins) - margins))


def objective(quick: bool, weights: np.ndarray, intercept: float) -> float:
    """Computes the objective in float64."""
    rows, held = samples(quick)
    weights = weights.astype(np.float64)
    margins = rows.astype(np.float64) @ weights + intercept
    losses = np.logaddexp(0, np.where(held, -margins, margins))
    return float(losses.mean() + alpha(quick) * np.abs(weights).sum())


def prepare_ours(quick: bool, solver: Any, threads: int) -> Callable[[], Any]:
    """Prepares ``PASSES`` passes of our solver from zero weights, with compiled loops."""
    rows, held = samples(quick)
    labels = Ragged.from_rows([[0] if positive else [] for positive in held])
    width, options = (
        SIZES[quick][1],
        {"alpha": alpha(quick), "solver": solver, "epochs": PASSES, "threads": threads},
    )
    SparseLogistic(width, **options).partial_fit(rows, labels)

    def learn() -> tuple[np.ndarray, float]:
        model = SparseLogistic(width, **options).partial_fit(rows, labels)
        return model.weights[:, 0], float(model.intercepts[0])

    return learn


def prepare_sgd(quick: bool, shuffle: bool) -> Callable[[], Any]:
    """Prepares as many passes of SGDClassifier, in float32, which is slightly faster than float64."""
    from sklearn.linear_model import SGDClassifier

    rows, held = samples(quick)
    options: dict[str, Any] = {"loss": "log_loss", "penalty": "l1", "alpha": alpha(quick), "tol": None}
    model = SGDClassifier(max_iter=PASSES, shuffle=shuffle, random_state=0, **options)
    return lambda: _learnt(model.fit(rows, held))


def prepare_regression(quick: bool, solver: str) -> Callable[[], Any]:
    """Prepares LogisticRegression; saga gives the optimum, liblinear also penalises the intercept."""
    from sklearn.linear_model import LogisticRegression

    rows, held = samples(quick)
    rows = rows.astype(np.float64)
    tolerance = {"saga": 1e-5, "liblinear": 1e-3}[solver]
    model = LogisticRegression(solver=solver, l1_ratio=1, C=1, tol=tolerance, max_iter=400, random_state=0)
    return lambda: _learnt(model.fit(rows, held))


def _learnt(model: Any) -> tuple[np.ndarray, float]:
    return model.coef_[0], float(model.intercept_[0])


def claims(quick: bool) -> list[Claim]:
    """Measures the claims of both solvers."""
    repeats, count = (1 if quick else 3), SIZES[quick][0]

    def measured(
        prepare: Callable[..., Callable[[], Any]], *arguments: Any, **options: Any
    ) -> list[Measured]:
        return [measure_apart(prepare, quick, *arguments, **options) for _ in range(repeats)]

    def rate(runs: list[Measured]) -> float:
        return PASSES * count / statistics.median(run.cpu for run in runs)

    def lacking(runs: list[Measured]) -> float:
        return statistics.median(objective(quick, *run.result) / best - 1 for run in runs)

    saga, liblinear = (
        measure_apart(prepare_regression, quick, solver, rival=True, threads=1)
        for solver in ("saga", "liblinear")
    )
    best = objective(quick, *saga.result)
    shuffled, unshuffled = (measured(prepare_sgd, own, rival=True, threads=1) for own in (True, False))
    results = []
    for solver in (ProximalSgd(), Ftrl()):
        name = f"{solver.name}, {count:,} samples x {len(saga.result[0]):,}"
        runs = measured(prepare_ours, solver, 1, threads=1)
        results += [
            Claim(f"{name}, samples a CPU s", rate(runs), rival, rate(own), aim=aim)
            for rival, own, aim in (
                ("SGDClassifier", shuffled, 3),
                ("SGDClassifier, not shuffled", unshuffled, 3),
            )
        ]
        about = f"{name}, {PASSES} passes, objective above the optimum by a share of"
        results += [
            Claim(about, lacking(runs), rival, lacking(own), aim=1, better="less")
            for rival, own in (("SGDClassifier", shuffled), ("SGDClassifier, not shuffled", unshuffled))
        ]
        if isinstance(solver, Ftrl):
            results.append(Claim(about, lacking(runs), aim=1e-3, better="less"))
        zeros = float((runs[0].result[0] == 0).mean()), float((saga.result[0] == 0).mean())
        results.append(Claim(f"{name}, share of weights that are 0", zeros[0], "saga", zeros[1], better=None))
    two, alone = measured(prepare_ours, Ftrl(), 2, threads=2), measured(prepare_ours, Ftrl(), 1, threads=1)
    walls = [PASSES * count / statistics.median(run.wall for run in own) for own in (two, alone)]
    results += [
        Claim("ftrl in two threads, samples a wall s", walls[0], "one thread", walls[1], aim=1.6),
        Claim(
            "ftrl in two threads, objective above the optimum by a share of",
            lacking(two),
            aim=5e-4,
            better="less",
        ),
    ]
    results += [
        Claim(
            f"ftrl, {PASSES} passes, CPU s",
            statistics.median(run.cpu for run in alone),
            rival,
            own.cpu,
            aim=1,
            better="less",
        )
        for rival, own in (("saga", saga), ("liblinear", liblinear))
    ]
    return results
