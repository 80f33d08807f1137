"""Nearest likes against the nearest dislike: a viewer of crime and of cookery gets both.

One mean vector of all likes lies between the tastes. Here each like has a neighbourhood of its own
(tasks/recommend/nearness.py), and the few nearest likes decide:

    liked(t)    = √(sum of the m largest near(l, t)² over the likes l / m);  m: at most the number of likes
    disliked(t) = the largest near(d, t) over the dislikes d
    score(t)    = liked(t) - max(0, disliked(t) - max(0, liked(t) - margin)) + POPULAR · popularity(t)

Squares: of a title near to one like and one between two, the first is better. A dislike lowers what is nearer
to it than to the likes, or farther by less than the margin: who dislikes one football match and likes ten
still gets football, without the matches like that one. How much a title is liked does not count, its sign
does: weights by stars gained nothing on films (docs/log).
"""

import dataclasses
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, Self

import numpy as np

from storage.arrays import offsets_of
from tasks.form import configurable, setting
from tasks.recommend.likes import Likes, Reason, Titles
from tasks.recommend.nearness import crowds, nearness
from tasks.recommend.popularity import popularity

POPULAR = 0.01
TILE = 1 << 25  # numbers in a tile of nearness: 128 MiB
_NEAREST = "m: the nearest likes that score a title; 1 follows every like, many only the largest taste."
_MARGIN = "A title must be nearer to likes than to the nearest dislike by this, else that lowers it."


@dataclass(frozen=True)
class FittedNearestLikes:
    """Settled likes and where each viewer's begin; of titles vectors, crowds and popularity."""

    settings: "NearestLikes"
    likes: Likes
    offsets: np.ndarray
    vectors: np.ndarray
    crowd: np.ndarray
    popularity: np.ndarray

    def scores(self, viewers: np.ndarray, titles: np.ndarray) -> np.ndarray:
        """float32 (viewers, titles), finite; call it with a thousand viewers at once where there are many."""
        own, starts = self._likes_of(viewers)
        rows, columns = np.unique(own.titles, return_inverse=True)
        kinds = own.values > 0
        found = np.empty((len(viewers), len(titles)), dtype=np.float32)
        width = max(TILE // max(len(rows), 1), 64)
        for start in range(0, len(titles), width):
            part = titles[start : start + width]
            near = nearness(self.vectors, self.crowd, rows, part)
            popular = POPULAR * self.popularity[part]
            for viewer, (begin, end) in enumerate(pairwise(starts.tolist())):
                mine, kind = columns[begin:end], kinds[begin:end]
                liked = self._liked(near[mine[kind]])
                score = liked + popular
                if not kind.all():
                    disliked = near[mine[~kind]].max(axis=0)
                    score -= np.maximum(0, disliked - np.maximum(0, liked - self.settings.margin))
                found[viewer, start : start + width] = score
        return found

    def shares(self, viewer: int, titles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A viewer's likes, rows of titles, and each one's share of the squared nearness of all to a title:
        float32 (likes, titles); columns sum to 1, or are zero where no like is near.
        """
        own, _ = self._likes_of(np.array([viewer]))
        liked = own.titles[own.values > 0]
        near = nearness(self.vectors, self.crowd, liked, titles)
        np.square(near, out=near)
        total = near.sum(axis=0)
        return liked, np.divide(near, total, out=near, where=total > 0)

    def why(self, viewer: int, title: int) -> list[Reason]:
        """The nearest likes, and the nearest dislike where it lowers the score, by falling share of the sum
        of their squared nearness.
        """
        own, _ = self._likes_of(np.array([viewer]))
        near = nearness(self.vectors, self.crowd, own.titles, np.array([title]))[:, 0]
        kinds = own.values > 0
        liked, disliked = (self._nearest(near, np.flatnonzero(kinds == kind)) for kind in (True, False))
        count = max(min(self.settings.nearest, int(kinds.sum())), 1)
        score, against = np.sqrt(np.square(near[liked]).sum() / count), near[disliked[:1]]
        places = np.concatenate([liked, disliked[:1][against > max(0, score - self.settings.margin)]])
        places = places[np.argsort(-near[places], kind="stable")]
        shares = np.square(near[places]) / np.square(near[places]).sum()
        return [
            Reason(int(own.titles[place]), float(share), bool(kinds[place]))
            for place, share in zip(places, shares, strict=True)
        ]

    def revised(self, viewer: int, titles: np.ndarray, values: np.ndarray) -> Self:
        """As if this viewer's likes were others, int32 and float32 (likes,); for this viewer alone."""
        count = len(titles)
        viewers, times = np.full(count, viewer, dtype=np.int32), np.zeros(count)
        likes = Likes(viewers, titles, values, times, self.likes.viewer_count).settled()
        return dataclasses.replace(self, likes=likes, offsets=likes.offsets())

    def _nearest(self, near: np.ndarray, places: np.ndarray) -> np.ndarray:
        order = places[np.argsort(-near[places], kind="stable")][: self.settings.nearest]
        return order[near[order] > 0]

    def _liked(self, near: np.ndarray) -> np.ndarray:
        """The root of the mean square of the m largest of (likes, titles): (titles,)."""
        count = min(self.settings.nearest, len(near))
        if count < len(near):
            near = np.partition(near, len(near) - count, axis=0)[-count:]
        return np.sqrt(np.square(near).sum(axis=0) / np.float32(max(count, 1)))

    def _likes_of(self, viewers: np.ndarray) -> tuple[Likes, np.ndarray]:
        """Likes of some viewers, one after the other, and where those of each begin."""
        lengths = self.offsets[viewers + 1] - self.offsets[viewers]
        starts = offsets_of(lengths)
        rows = np.arange(starts[-1]) + np.repeat(self.offsets[viewers] - starts[:-1], lengths)
        return self.likes.take(rows), starts


@configurable
class NearestLikes:
    """The nearest likes against the nearest dislike, with a margin."""

    name: Literal["nearest_likes"] = "nearest_likes"
    nearest: int = setting(5, _NEAREST, ge=1)
    margin: float = setting(0.05, _MARGIN, ge=0, le=1)

    def fit(self, likes: Likes, titles: Titles) -> FittedNearestLikes:
        """Orders the likes and measures crowds; a ValueError where likes are of unknown titles."""
        titles.check(likes)
        own = likes.settled()
        popular = popularity(own, titles)
        return FittedNearestLikes(self, own, own.offsets(), titles.vectors, crowds(titles.vectors), popular)
