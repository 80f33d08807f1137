"""Recommendations: MovieLens beside implicit's ALS, simulated viewers, and lists for 10,000 viewers.

The guide is that of the United Kingdom (--quick: the bundled guide), with vectors of a nightly run. The lists
of the evening are computed for 10,000 viewers with 30 likes each, a tenth of them dislikes: ten of 5,000
coming titles, out of 10,000 titles in 256 dimensions.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.claims import SAMPLE, Claim, guides, run
from benchmarks.nights.night import run_night
from benchmarks.processes import measure_apart
from benchmarks.recommend import films, tonight, viewers
from storage.arrays import unit_rows
from tasks.recommend import Likes, NearestLikes, Titles, best_titles, find_counterfactual

TITLES, COMING, DIM, GROUPS, LIKES, DISLIKED = 10_000, 5_000, 256, 200, 30, 0.1


def world(viewers: int) -> tuple[Likes, Titles, np.ndarray]:
    """Draws simulated viewers with three groups of liked titles each, and the coming titles."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(GROUPS, DIM)).astype(np.float32)
    group = np.sort(rng.integers(GROUPS, size=TITLES))
    vectors = unit_rows(centres[group] + rng.normal(size=(TITLES, DIM)).astype(np.float32))
    titles = Titles(vectors, np.ones(TITLES, np.int64))
    tastes = rng.integers(GROUPS, size=(viewers, 3))
    starts = np.searchsorted(group, np.arange(GROUPS + 1))
    chosen = tastes[np.arange(viewers)[:, None], rng.integers(3, size=(viewers, LIKES))]
    liked = starts[chosen] + rng.integers(1 << 30, size=chosen.shape) % np.diff(starts)[chosen]
    values = np.where(rng.random(liked.size) < DISLIKED, -1, 1).astype(np.float32)
    owners = np.repeat(np.arange(viewers, dtype=np.int32), LIKES)
    likes = Likes(owners, liked.ravel().astype(np.int32), values, np.zeros(liked.size), viewers)
    return likes, titles, np.sort(rng.choice(TITLES, COMING, replace=False))


def evening(viewers: int) -> Callable[[], int]:
    """Fits the recommender to the likes and makes the lists of all viewers."""
    likes, titles, coming = world(viewers)

    def lists() -> int:
        recommender = NearestLikes().fit(likes, titles)
        return sum(len(rows) for rows in best_titles(recommender, np.arange(viewers), coming))

    return lists


def explanations(viewers: int) -> Callable[[], int]:
    """Finds the reasons of ten titles per viewer, and the likes without which they would not be listed."""
    likes, titles, coming = world(viewers)
    recommender = NearestLikes().fit(likes, titles)
    lists = list(best_titles(recommender, np.arange(viewers), coming))

    def explain() -> int:
        count = 0
        for viewer, rows in enumerate(lists):
            likes_of_viewer = likes.take(np.flatnonzero(likes.viewers == viewer))
            values = dict(zip(likes_of_viewer.titles.tolist(), likes_of_viewer.values.tolist(), strict=True))

            def listed(revised: NearestLikes, viewer: int = viewer) -> np.ndarray:
                return next(best_titles(revised, np.array([viewer]), coming))  # pyright: ignore

            for row in rows.tolist():
                count += bool(find_counterfactual(recommender, viewer, values, row, listed).without)  # pyright: ignore
        return count

    return explain


def _evening(quick: bool) -> Iterator[Claim]:
    many, some = (1_000, 2) if quick else (10_000, 10)
    took = measure_apart(evening, many, threads=1)
    name = f"{many:,} viewers x {COMING:,} coming titles, one thread"
    aim = None if quick else 30
    yield Claim(f"{name}, seconds", took.wall, aim=aim, better="less")
    yield Claim(f"{name}, CPU seconds", took.cpu, better="less")
    yield Claim(f"{name}, MiB above imports and inputs", took.above, better="less")
    one = measure_apart(evening, 1, threads=1)
    yield Claim(f"one viewer x {COMING:,} coming titles, seconds", one.wall, aim=1, better="less")
    took = measure_apart(explanations, some, threads=1)
    name = f"what would change a list of ten, {some} viewers"
    yield Claim(f"{name}, CPU seconds a list", took.cpu / some, better="less")
    yield Claim(f"{name}, share of titles with an answer", took.result / some / 10)


def measure_recommend(quick: bool) -> Sequence[Claim]:
    """Measures all claims of this file."""
    claims = [*_evening(quick), *tonight.claims(quick), *films.claims(quick)]
    with tempfile.TemporaryDirectory() as folder:
        home, feed = Path(folder) / "home", SAMPLE if quick else guides("UK1")[0]
        run_night(home, [feed])
        return [*claims, *viewers.claims(home, quick)]


if __name__ == "__main__":
    sys.exit(run(measure_recommend, __doc__ or ""))
