"""Simulated viewers of a real guide: share of lists whose first ten titles cover every taste.

A viewer likes two or three groups of titles: clusters of the nightly run, or categories of the guide, which
are not used to compute any vector. Each of 8 to 30 likes is drawn from one of the groups, whose weights are
Dirichlet(3). A group with fewer than three likes is not a taste, so such a viewer is drawn again. In
addition, a fifth as many likes are drawn from all titles. Half of the titles of the guide are coming, and
likes are drawn from the other half, so no liked title is on the list.

The rival is one averaged vector, alone and with maximal marginal relevance (λ = .3, the best of .1 to .5).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from benchmarks.claims import Claim
from storage.arrays import open_array, unit_rows
from storage.artifacts import Clustering, Corpus, Vectors
from storage.formats.corpus import open_corpus
from storage.home.workspace import Workspace, newest_first
from tasks.neighbours.similarity import nonzero_rows
from tasks.recommend import Likes, NearestLikes, Popularity, Titles, best_titles
from tasks.recommend.lists import POOL, top_indices

TOP, NOISE, LEAST, SMALLEST, LARGEST = 10, 0.2, 3, 30, 600
SHARED = 0.002  # two tastes of a viewer share at most this share of the guide's titles
MMR = 0.3


@dataclass(frozen=True)
class Night:
    """A finished nightly run: titles, and their groups by kind, bool (titles, groups)."""

    titles: Titles
    groups: dict[str, np.ndarray]

    @staticmethod
    def newest(home: Path) -> "Night":
        """Returns the last nightly run of a home."""
        workspace = Workspace(home, create=False)
        kinds = (Corpus, Vectors, Clustering)
        corpus, vectors, clustering = (
            workspace.folder(next(newest_first(workspace, kind))) for kind in kinds
        )
        table = pq.read_table(corpus / "titles.parquet", columns=["airings"])
        opened = open_corpus(corpus)
        clusters = np.asarray(open_array(clustering, "clusters"))
        members = clusters[:, None] == np.arange(clusters.max() + 1)
        categories = opened.labels.multi_hot(len(opened.label_names))
        similarity = np.array(open_array(vectors, "similarity"))
        return Night(
            Titles(similarity, table["airings"].to_numpy()),
            {"clusters": _usable(members), "categories": _usable(categories)},
        )


def _usable(members: np.ndarray) -> np.ndarray:
    sizes = members.sum(axis=0)
    return members[:, (sizes >= SMALLEST) & (sizes <= LARGEST)]


@dataclass(frozen=True)
class Viewer:
    """A viewer: rows of liked and of coming titles, tastes (columns of the groups), and their weights."""

    likes: np.ndarray
    coming: np.ndarray
    tastes: np.ndarray
    weights: np.ndarray


def draw_viewers(
    members: np.ndarray, described: np.ndarray, tastes: int, count: int, seed: int
) -> Iterator[Viewer]:
    """Draws viewers with ``tastes`` tastes each."""
    rng = np.random.default_rng(seed)
    while count:
        chosen = rng.choice(members.shape[1], tastes, replace=False)
        coming = rng.random(len(members)) < 0.5
        weights = rng.dirichlet([3] * tastes)
        drawn = rng.choice(tastes, rng.integers(8, 31), p=weights)
        many = np.bincount(drawn, minlength=tastes).min() >= LEAST
        if not many or (members[:, chosen].sum(axis=1) > 1).mean() > SHARED:
            continue
        seen_titles = [np.flatnonzero(members[:, taste] & ~coming) for taste in chosen]
        likes = [rng.choice(seen_titles[taste]) for taste in drawn]
        likes += rng.choice(np.flatnonzero(~coming), round(NOISE * len(drawn))).tolist()
        yield Viewer(np.unique(likes), np.flatnonzero(coming & described), chosen, weights)
        count -= 1


System = Callable[[Titles, Viewer], np.ndarray]


def _strategy(kind: type[NearestLikes] | type[Popularity]) -> System:
    strategy = kind()
    cache: dict[int, object] = {}

    def answer(titles: Titles, viewer: Viewer) -> np.ndarray:
        empty = np.zeros(0, np.int32)
        none = Likes(empty, empty, empty.astype(np.float32), empty.astype(np.float64), 1)
        fitted = cache.setdefault(id(titles), strategy.fit(none, titles))
        rows = viewer.likes.astype(np.int32)
        revised = fitted.with_likes(0, rows, np.ones(len(rows), np.float32))  # pyright: ignore
        return next(best_titles(revised, np.array([0]), viewer.coming, TOP))

    return answer


def _averaged(titles: Titles, viewer: Viewer) -> np.ndarray:
    mean = titles.vectors[viewer.likes].mean(axis=0)
    return viewer.coming[top_indices(titles.vectors[viewer.coming] @ mean, TOP)]


def _averaged_mmr(titles: Titles, viewer: Viewer) -> np.ndarray:
    """(1 - λ) cos(mean, t) - λ max cos(chosen, t); Carbonell, Goldstein, SIGIR 1998."""
    mean = unit_rows(titles.vectors[viewer.likes].mean(axis=0)[None])[0]
    scores = titles.vectors[viewer.coming] @ mean
    pool = top_indices(scores, POOL)
    rows, value = viewer.coming[pool], (1 - MMR) * scores[pool]
    chosen, nearest = [], np.zeros(len(pool), np.float32)
    for _ in range(TOP):
        best = int((value - MMR * nearest).argmax())
        chosen.append(best)
        value[best] = -np.inf
        nearest = np.maximum(nearest, titles.vectors[rows] @ titles.vectors[rows[best]])
    return rows[chosen]


RIVALS: dict[str, System] = {
    "one averaged vector": _averaged,
    "one averaged vector, MMR": _averaged_mmr,
    "popularity": _strategy(Popularity),
}
FIGURES = ("all tastes in the first ten", "two titles of each", "share of the ten that are of a taste")


def judge(members: np.ndarray, viewer: Viewer, rows: np.ndarray) -> list[float]:
    """Returns the FIGURES of one list."""
    hits = members[np.ix_(rows, viewer.tastes)]
    counts = hits.sum(axis=0)
    return [float((counts >= 1).all()), float((counts >= 2).all()), float(hits.any(axis=1).mean())]


def claims(home: Path, quick: bool) -> Iterator[Claim]:
    """Measures the FIGURES of nearest_likes and of its rivals."""
    night = Night.newest(home)
    described = nonzero_rows(night.titles.vectors)
    systems = {"nearest_likes": _strategy(NearestLikes)} | RIVALS
    for (kind, members), tastes in ((group, count) for count in (2, 3) for group in night.groups.items()):
        viewers = list(draw_viewers(members, described, tastes, 40 if quick else 300, tastes))
        results = {
            name: np.mean(
                [judge(members, viewer, system(night.titles, viewer)) for viewer in viewers], axis=0
            )
            for name, system in systems.items()
        }
        ours = results.pop("nearest_likes")
        for place, figure in enumerate(FIGURES):
            name = f"viewers of {tastes} {kind}: {figure}"
            if place == 0 and tastes == 2:
                yield Claim(name, float(ours[place]), aim=0.9)
            for rival, theirs in results.items():
                if place == 0 or rival == "one averaged vector":
                    yield Claim(name, float(ours[place]), rival, float(theirs[place]))
