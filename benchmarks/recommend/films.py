"""Ranking of held-out MovieLens films by our recommenders and by implicit's ALS.

A random fifth of the ratings is held out, because the copy of the data has no times (ratings are stars above
or below the mean of the viewer). A held-out film counts if its rating is above that mean. All films outside
the training part of the viewer are ranked. Films have no data except training ratings: the vector of a film
is its unit-norm column of the matrix of viewers and films with weights max(.1, stars + 2), the matrix that
ALS factorises. The likes for nearest_likes are the ratings above the mean; there are no dislikes, because a
viewer has chosen even a film with a low rating.

Both systems are tuned on a fifth of the training part of each split, by the mean score: nearest_likes its
number of likes, ALS its weights, factors, regularization and alpha. Intervals are bootstraps over viewers of
their means over the splits.
"""

import csv
import itertools
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.claims import Claim, is_installed
from benchmarks.processes import call_apart
from storage.arrays import unit_rows
from tasks.recommend import FactorisedLikes, Likes, NearestLikes, Popularity, Recommender, Titles

TOP, SPLITS, RESAMPLES = 10, 3, 1_000
METRICS = ("nDCG@10", "recall@10", "MAP")
NEAREST = (1, 2, 3, 5, 8, 12)
ALS_GRID = (("graded", "liked"), (16, 32, 64), (10.0, 30.0, 100.0), (1.0, 4.0, 16.0))


@dataclass(frozen=True)
class Ratings:
    """Viewers and films, int64, and stars above the mean of the viewer, float64: (ratings,) each."""

    viewers: np.ndarray
    films: np.ndarray
    stars: np.ndarray
    shape: tuple[int, int]

    def take(self, rows: np.ndarray) -> "Ratings":
        """Selects ratings."""
        return Ratings(self.viewers[rows], self.films[rows], self.stars[rows], self.shape)

    def split(self, seed: int) -> tuple["Ratings", "Ratings"]:
        """Splits at random into four fifths and a fifth."""
        held_out = np.random.default_rng(seed).random(len(self.stars)) < 0.2
        return self.take(~held_out), self.take(held_out)

    def matrix(self, kind: str) -> np.ndarray:
        """Returns float32 (viewers, films): graded has max(.1, stars + 2); liked has 1 above the mean."""
        weights = np.maximum(0.1, self.stars + 2) if kind == "graded" else self.stars > 0
        matrix = np.zeros(self.shape, dtype=np.float32)
        matrix[self.viewers, self.films] = weights
        return matrix


def read_ratings() -> Ratings:
    """Reads the ratings below $GUIDESPACE_DATA; raises SystemExit if they are missing."""
    folder = os.environ.get("GUIDESPACE_DATA")
    file = Path(folder or "") / "ratings" / "ml-latest-small" / "ratings.csv"
    if not folder or not file.exists():
        sys.exit("set GUIDESPACE_DATA to a folder that holds ratings/ml-latest-small/ratings.csv")
    with file.open(encoding="utf-8") as lines:
        rows = [(row["userId"], row["movieId"], row["rating"]) for row in csv.DictReader(lines)]
    columns = np.array(rows, dtype=np.float64)
    viewers, films = (np.unique(columns[:, place], return_inverse=True)[1] for place in (0, 1))
    return Ratings(viewers, films, columns[:, 2], (int(viewers.max()) + 1, int(films.max()) + 1))


def judge(scores: np.ndarray, training: Ratings, held_out: Ratings) -> np.ndarray:
    """Returns the METRICS of each viewer, float64 (viewers, 3); NaN without a held-out film that counts."""
    relevant = np.zeros(training.shape, dtype=bool)
    liked = held_out.take(held_out.stars > 0)
    relevant[liked.viewers, liked.films] = True
    ranked_scores = scores.copy()
    ranked_scores[training.viewers, training.films] = -np.inf
    order = np.argsort(-ranked_scores, axis=1, kind="stable")
    hits, counts = np.take_along_axis(relevant, order, axis=1), relevant.sum(axis=1)
    discount = 1 / np.log2(np.arange(2, TOP + 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        ideal = np.concatenate([[0], np.cumsum(discount)])[np.minimum(counts, TOP)]
        gain = hits[:, :TOP] @ discount / ideal
        recall = hits[:, :TOP].sum(axis=1) / counts
        precision = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
        average = (precision * hits).sum(axis=1) / counts
    return np.stack([gain, recall, average], axis=1)


def recommend(strategy: Recommender, training: Ratings) -> np.ndarray:
    """Returns the scores of all viewers and films."""
    count, liked = training.shape[1], training.take(training.stars > 0)
    values, times = np.ones(len(liked.stars), np.float32), np.zeros(len(liked.stars))
    viewers, films = liked.viewers.astype(np.int32), liked.films.astype(np.int32)
    vectors = unit_rows(np.ascontiguousarray(training.matrix("graded").T))
    titles = Titles(vectors, np.zeros(count, np.int64))
    recommender = strategy.fit(Likes(viewers, films, values, times, training.shape[0]), titles)
    return recommender.scores(np.arange(training.shape[0]), np.arange(count))


def als(training: Ratings, settings: Sequence[tuple[str, int, float, float]]) -> Iterator[np.ndarray]:
    """Yields the scores of implicit's alternating least squares by settings (Hu, Koren, Volinsky 2008)."""
    from implicit.als import AlternatingLeastSquares  # pyright: ignore[reportMissingImports]
    from scipy.sparse import csr_matrix

    for kind, factors, regularization, alpha in settings:
        model = AlternatingLeastSquares(
            factors=factors,
            regularization=regularization,
            alpha=alpha,
            iterations=15,
            random_state=0,
            num_threads=1,
        )
        model.fit(csr_matrix(training.matrix(kind)), show_progress=False)
        yield np.asarray(model.user_factors) @ np.asarray(model.item_factors).T


def als_figures(quick: bool) -> np.ndarray:
    """Returns the METRICS of each viewer by ALS with its best settings: float64 (splits, viewers, 3)."""
    splits = list(make_splits(quick))
    grid = [("graded", 16, 10.0, 1.0)] if quick else list(itertools.product(*ALS_GRID))
    figures = np.zeros(len(grid))
    for training, _ in splits:
        fitting, validation = training.split(SPLITS)
        figures += [np.nanmean(judge(scores, fitting, validation)[:, 0]) for scores in als(fitting, grid)]
    best = grid[int(np.argmax(figures))]
    print(f"ALS: {best}", file=sys.stderr)
    return np.stack([judge(next(als(training, [best])), training, test) for training, test in splits])


def make_splits(quick: bool) -> Iterator[tuple[Ratings, Ratings]]:
    """Returns training and held-out ratings of each split."""
    ratings = read_ratings()
    return (ratings.split(seed) for seed in range(1 if quick else SPLITS))


def claims(quick: bool) -> Iterator[Claim]:
    """Measures nDCG@10, recall@10 and MAP with intervals."""
    splits = list(make_splits(quick))
    strategies, tuning_scores = [NearestLikes(nearest=nearest) for nearest in NEAREST], np.zeros(len(NEAREST))
    for training, _ in splits:
        fitting, validation = training.split(SPLITS)
        tuning_scores += [
            np.nanmean(judge(recommend(strategy, fitting), fitting, validation)[:, 0])
            for strategy in strategies
        ]
    best = strategies[int(np.argmax(tuning_scores))]
    systems: dict[str, Recommender] = {
        f"nearest_likes, {best.nearest} likes": best,
        "nearest_likes, default": NearestLikes(),
        "factorisation, default": FactorisedLikes(),
    }
    results = {
        name: np.stack([judge(recommend(strategy, training), training, test) for training, test in splits])
        for name, strategy in (systems | {"popularity": Popularity()}).items()
    }
    if is_installed("implicit"):
        results["implicit ALS"] = call_apart(als_figures, quick, rival=True, threads=1)
    for place, metric in enumerate(METRICS):
        figures = {
            name: _figure(figures_of_viewers[:, :, place]) for name, figures_of_viewers in results.items()
        }
        for name in systems:
            value, interval = figures[name]
            for rival, aim in (("implicit ALS", 0.9), ("popularity", 1.0)):
                if rival in figures:
                    yield Claim(
                        f"films, {name}: {metric}",
                        value,
                        rival,
                        figures[rival][0],
                        interval=interval,
                        rival_interval=figures[rival][1],
                        aim=aim if metric == "nDCG@10" else None,
                    )


def _figure(metrics: np.ndarray) -> tuple[float, tuple[float, float]]:
    """Returns the mean of values (splits, viewers) over viewers, and its interval."""
    judged = metrics[:, ~np.isnan(metrics).all(axis=0)]
    viewers = np.nanmean(judged, axis=0)
    samples = np.random.default_rng(0).integers(len(viewers), size=(RESAMPLES, len(viewers)))
    low, high = np.percentile(viewers[samples].mean(axis=1), [2.5, 97.5])
    return float(viewers.mean()), (float(low), float(high))
