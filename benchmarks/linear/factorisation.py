"""Matrix factorisation: ordered against random ratings, one thread and two, and RMSE beside libraries.

Speed: synthetic ratings with the distribution of Netflix's, with a tenth of its ratings and of its users:
48,000 users (log-normal, the most active one has a hundred times the mean) and 17,770 items (Zipf and
Mandelbrot; a tenth of them has 70 % of the ratings). The time of an epoch excludes the ordering, which has a
separate row; CPU seconds, medians. Random order uses the same loop.

RMSE: MovieLens, five folds, 20 epochs, the best of the same learning rates and decays for each library. The
seconds of a library are those of the five fits. A library that is not installed is reported and omitted.
"""

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from statistics import median
from typing import Any

import numpy as np

from benchmarks.claims import Claim, is_installed, run
from benchmarks.processes import call_apart
from benchmarks.recommend.films import read_ratings

USERS, ITEMS = 48_000, 17_770
RATES, DECAYS, FOLDS = (0.005, 0.01, 0.02, 0.04), (0.02, 0.05, 0.1, 0.15), 5
Columns = tuple[np.ndarray, np.ndarray, np.ndarray]  # users, items, ratings


def power_law(ratings: int, seed: int = 0) -> Columns:
    """Draws ratings with the density of the complete data set, in random order."""
    rng = np.random.default_rng(seed)
    users = max(100, USERS * ratings // 10_000_000)
    activities = rng.lognormal(0, 1.25, users)
    popularities = rng.permutation((np.arange(ITEMS) + 250.0) ** -1.6)
    draws = (
        np.searchsorted(np.cumsum(weights / weights.sum()), rng.random(ratings, np.float32))
        for weights in (activities, popularities)
    )
    ids = [np.minimum(rows, size - 1) for rows, size in zip(draws, (users, ITEMS), strict=True)]
    return ids[0], ids[1], rng.standard_normal(ratings, np.float32)


def epochs(ratings: int, dim: int, ordered: bool, threads: int, repeats: int) -> tuple[float, float, float]:
    """Returns CPU and wall seconds of an epoch, and CPU seconds of the ordering."""
    from tasks.linear.factorisation import Factorisation, FactorisationSettings
    from tasks.linear.rating_blocks import BLOCKS, RatingBlocks, sort_into_blocks
    from tasks.linear.ratings import Ratings

    table = Ratings.from_columns(*power_law(ratings))
    model = Factorisation(FactorisationSettings(dim=dim, threads=threads))
    model.partial_fit(Ratings.from_columns(["a"], ["b"], [0.0]))  # compiles
    users, items = (
        side.add(names).take(ids)
        for side, names, ids in (
            (model.users, table.user_names, table.users),
            (model.items, table.item_names, table.items),
        )
    )
    started = time.process_time()
    blocks = sort_into_blocks(users, items, table.values, np.random.default_rng(0))
    ordering = time.process_time() - started
    if not ordered:
        offsets = np.r_[0, np.full(BLOCKS**2, ratings)]  # one block with all ratings
        blocks = RatingBlocks(users.astype(np.int32), items.astype(np.int32), table.values, offsets)
    cpu, wall = [], []
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(repeats):
            begin = time.process_time(), time.perf_counter()
            model.epoch(blocks, pool)
            cpu.append(time.process_time() - begin[0])
            wall.append(time.perf_counter() - begin[1])
    return median(cpu), median(wall), ordering


def our_fit(training: Columns, held_out: Columns, dim: int, passes: int, rate: float, decay: float) -> Any:
    """Fits our factorisation; returns CPU seconds and predictions of held-out ratings."""
    from tasks.linear.factorisation import Factorisation, FactorisationSettings
    from tasks.linear.ratings import Ratings

    settings = FactorisationSettings(dim=dim, epochs=passes, learning_rate=rate, weight_decay=decay)
    Factorisation(settings).partial_fit(Ratings.from_columns(["a"], ["b"], [0.0]))  # compiles
    ratings = Ratings.from_columns(*training)
    started = time.process_time()
    model = Factorisation(settings).fit(ratings)
    return time.process_time() - started, model.predict(*held_out[:2])


def surprise_fit(
    training: Columns, held_out: Columns, dim: int, passes: int, rate: float, decay: float
) -> Any:
    from surprise import SVD, Dataset, Reader  # pyright: ignore[reportMissingImports]

    rows = [(*row, None) for row in zip(*(column.tolist() for column in training), strict=True)]
    trainset = Dataset(Reader(rating_scale=(-9, 9))).construct_trainset(rows)
    started = time.process_time()
    model = SVD(n_factors=dim, n_epochs=passes, lr_all=rate, reg_all=decay, random_state=0).fit(trainset)
    seconds = time.process_time() - started
    pairs = zip(held_out[0].tolist(), held_out[1].tolist(), strict=True)
    return seconds, np.array([model.predict(*pair, clip=False).est for pair in pairs])


def cornac_fit(training: Columns, held_out: Columns, dim: int, passes: int, rate: float, decay: float) -> Any:
    from cornac.data import Dataset  # pyright: ignore[reportMissingImports]
    from cornac.models import MF  # pyright: ignore[reportMissingImports]

    rows = Dataset.from_uir(list(zip(*(column.tolist() for column in training), strict=True)), seed=0)
    model: Any = MF(
        k=dim, max_iter=passes, learning_rate=rate, lambda_reg=decay, use_bias=True, num_threads=1, seed=0
    )
    started = time.process_time()
    model.fit(rows)
    seconds = time.process_time() - started
    users = [rows.uid_map.get(name, -1) for name in held_out[0].tolist()]
    items = [rows.iid_map.get(name, -1) for name in held_out[1].tolist()]
    biases = np.append(model.u_biases, 0)[users] + np.append(model.i_biases, 0)[items] + model.global_mean
    left, right = (np.vstack([part, np.zeros(dim)]) for part in (model.u_factors, model.i_factors))
    return seconds, biases + np.einsum("ij,ij->i", left[users], right[items])


Fit = Callable[[Columns, Columns, int, int, float, float], Any]
RIVALS: dict[str, tuple[str, Fit]] = {
    "scikit-surprise SVD": ("surprise", surprise_fit),
    "cornac MF": ("cornac", cornac_fit),
}


def movielens() -> Columns:
    """Returns users, items and ratings of the MovieLens subset below $GUIDESPACE_DATA."""
    ratings = read_ratings()
    return ratings.viewers, ratings.films, ratings.stars


def folds(fit: Fit, dim: int, rate: float, decay: float) -> tuple[float, float]:
    """Returns the mean RMSE of the held-out folds and the CPU seconds of the fits."""
    columns, seconds, errors = movielens(), 0.0, []
    fold = np.random.default_rng(0).permutation(len(columns[0])) % FOLDS
    for held in range(FOLDS):
        training, test = (
            tuple(column[is_selected] for column in columns) for is_selected in (fold != held, fold == held)
        )
        took, predictions = fit(training, test, dim, 20, rate, decay)  # pyright: ignore[reportArgumentType]
        seconds += took
        errors.append(float(np.mean((predictions - test[2]) ** 2) ** 0.5))
    return float(np.mean(errors)), seconds


def tuned(fit: Fit, dim: int, grid: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Returns the best RMSE of a grid of learning rates and decays, and median CPU seconds of five fits."""
    results = [folds(fit, dim, *point) for point in grid]
    return min(error for error, _ in results), median(seconds for _, seconds in results)


def fit_seconds(fit: Fit, ratings: int, dim: int) -> float:
    """Returns the CPU seconds of ten epochs on power-law ratings without repeated pairs."""
    users, items, values = power_law(ratings)
    once = np.unique(users * ITEMS + items, return_index=True)[1]
    once = np.random.default_rng(0).permutation(once)
    training = users[once], items[once], values[once]
    return fit(training, (users[:1], items[:1], values[:1]), dim, 10, 0.005, 0.02)[0]


def measure_speed(quick: bool) -> list[Claim]:
    """Compares ordered and random ratings by factors and threads, and extrapolates to 100 M ratings."""
    ratings, claims, of = (1_000_000, [], "1 M") if quick else (10_000_000, [], "10 M")
    per_rating = 0.0
    for dim, repeats in ((16, 5), (128, 5), (1024, 2)):
        least = 1 if quick else repeats
        ordered, wall, ordering = call_apart(epochs, ratings, dim, True, 1, least, threads=1)
        shuffled = call_apart(epochs, ratings, dim, False, 1, least, threads=1)[0]
        per_rating = ordered / ratings
        about, aim = f"{of} ratings x {dim:,} factors", 1 / 1.5 if dim == 128 else None
        name = f"an epoch, {about}, CPU s"
        claims.append(Claim(name, ordered, "random order", shuffled, aim=aim, better="less"))
        flops = 8 * dim * ratings / ordered / 1e9  # 2 operations per factor for the product, 3 for each row
        claims.append(Claim(f"GFLOP/s, {about}", flops, better=None))
        if dim == 128:
            claims.append(Claim(f"ordering {of} ratings, CPU s", ordering, better=None))
            both = call_apart(epochs, ratings, dim, True, 2, least, threads=1)[1]
            claims.append(
                Claim(f"epochs a second, {about}, two threads", 1 / both, "one thread", 1 / wall, aim=1.6)
            )
    hours = per_rating * 2 * 100e6 * 30 / 3600
    name = "100 M ratings x 2,048 factors x 30 epochs, one thread, hours by arithmetic from 1,024"
    return [*claims, Claim(name, hours, better=None)]


def measure_libraries(quick: bool) -> list[Claim]:
    """Compares RMSE and seconds with the libraries that are installed."""
    claims: list[Claim] = []
    dim, ratings = 100, 200_000 if quick else 1_000_000
    grid = [(0.02, 0.1)] if quick else list(product(RATES, DECAYS))
    apart = partial(call_apart, threads=1)
    error, seconds = apart(tuned, our_fit, dim, grid)
    fitted = apart(fit_seconds, our_fit, ratings, 128)
    error_name = f"RMSE of held-out ratings of MovieLens, {dim} factors, best of {len(grid)} settings"
    seconds_name = f"MovieLens, five fits of 20 epochs, {dim} factors, CPU s"
    fit_name = f"a fit of 10 epochs with its ordering, {ratings:,} ratings x 128 factors, CPU s"
    beside: dict[str, tuple[float, float, float]] = {}
    for rival, (module, fit) in RIVALS.items():
        if is_installed(module, rival):
            beside[rival] = (
                *apart(tuned, fit, dim, grid, rival=True),
                apart(fit_seconds, fit, ratings, 128, rival=True),
            )
    ours = (error_name, error, 1.005), (seconds_name, seconds, 1.0), (fit_name, fitted, 1.0)
    for place, (name, value, aim) in enumerate(ours):
        for rival, theirs in beside.items():
            claims.append(Claim(name, value, rival, theirs[place], aim=aim, better="less"))
        if not beside:
            claims.append(Claim(name, value, better=None))
    return claims


def measure_factorisation(quick: bool) -> Sequence[Claim]:
    """Measures all claims of this file."""
    return [*measure_speed(quick), *measure_libraries(quick)]


if __name__ == "__main__":
    sys.exit(run(measure_factorisation, __doc__ or ""))
