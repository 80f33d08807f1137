"""Recommends titles that are similar to some of the likes of a viewer, who may have several tastes.

The mean vector of all likes would be between tastes, such as crime and cookery. Instead, the likes nearest to
a title (tasks/recommend/nearness.py) determine its score:

    liked(t)    = √(sum of the m largest near(l, t)² over the likes l / m);  m: at most the number of likes
    disliked(t) = the largest near(d, t) over the dislikes d
    score(t)    = liked(t) - max(0, disliked(t) - max(0, liked(t) - margin)) + w · popularity(t)

w is POPULARITY_WEIGHT. Because of the squares, a title near one like is better than a title between two
likes. A dislike lowers the score of a title unless the title is nearer to the likes, by at least the margin.
A viewer who dislikes one football match and likes ten still gets football, but not matches similar to the
disliked one. Only the sign of a like counts.
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

POPULARITY_WEIGHT = 0.01  # weight w of popularity in a score
TILE_SIZE = 1 << 25  # entries per tile of the nearness matrix: 128 MiB
_NEAREST = "m: number of nearest likes that determine a score; large values follow only the largest taste."
_MARGIN = "Minimum lead of the likes over the nearest dislike; below it, the dislike lowers the score."


@dataclass(frozen=True)
class FittedNearestLikes:
    """Fitted recommender by the nearest likes."""

    settings: "NearestLikes"
    likes: Likes  # without duplicates, sorted by viewer
    vectors: np.ndarray  # float32 (titles, dim)
    crowd: np.ndarray  # float32 (titles,), mean similarity to nearby titles (nearness.py)
    popularity: np.ndarray  # float32 (titles,)

    def scores(self, viewers: np.ndarray, titles: np.ndarray) -> np.ndarray:
        """Computes the scores of titles for viewers, float32 (viewers, titles)."""
        viewer_likes, starts = self._likes_of(viewers)
        rows, columns = np.unique(viewer_likes.titles, return_inverse=True)
        is_like = viewer_likes.values > 0
        scores = np.empty((len(viewers), len(titles)), dtype=np.float32)
        chunk_size = max(TILE_SIZE // max(len(rows), 1), 64)
        for start in range(0, len(titles), chunk_size):
            part = titles[start : start + chunk_size]
            near_values = nearness(self.vectors, self.crowd, rows, part)
            title_popularity = POPULARITY_WEIGHT * self.popularity[part]
            for viewer, (begin, end) in enumerate(pairwise(starts.tolist())):
                indices, is_viewer_like = columns[begin:end], is_like[begin:end]
                liked = self._score_likes(near_values[indices[is_viewer_like]])
                score = liked + title_popularity
                if not is_viewer_like.all():
                    disliked = near_values[indices[~is_viewer_like]].max(axis=0)
                    score -= np.maximum(0, disliked - np.maximum(0, liked - self.settings.margin))
                scores[viewer, start : start + chunk_size] = score
        return scores

    def shares(self, viewer: int, titles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the likes of a viewer, and their shares of each score, float32 (likes, titles).

        A share is proportional to the squared nearness. The shares of a title sum to 1, or are 0 if no like
        is near.
        """
        viewer_likes, _ = self._likes_of(np.array([viewer]))
        liked = viewer_likes.titles[viewer_likes.values > 0]
        near_values = nearness(self.vectors, self.crowd, liked, titles)
        np.square(near_values, out=near_values)
        similarity_sums = near_values.sum(axis=0)
        return liked, np.divide(near_values, similarity_sums, out=near_values, where=similarity_sums > 0)

    def reasons_for(self, viewer: int, title: int) -> list[Reason]:
        """Returns the likes nearest to a title, and the nearest dislike if it lowers the score.

        Shares are proportional to squared nearness, in descending order.
        """
        viewer_likes, _ = self._likes_of(np.array([viewer]))
        near_values = nearness(self.vectors, self.crowd, viewer_likes.titles, np.array([title]))[:, 0]
        is_like = viewer_likes.values > 0
        liked, disliked = (
            self._select_largest(near_values, np.flatnonzero(is_like == kind)) for kind in (True, False)
        )
        count = max(min(self.settings.nearest, int(is_like.sum())), 1)
        score, dislike_nearness = (
            np.sqrt(np.square(near_values[liked]).sum() / count),
            near_values[disliked[:1]],
        )
        indices = np.concatenate(
            [liked, disliked[:1][dislike_nearness > max(0, score - self.settings.margin)]]
        )
        indices = indices[np.argsort(-near_values[indices], kind="stable")]
        shares = np.square(near_values[indices]) / np.square(near_values[indices]).sum()
        return [
            Reason(int(viewer_likes.titles[index]), float(share), bool(is_like[index]))
            for index, share in zip(indices, shares, strict=True)
        ]

    def with_likes(self, viewer: int, titles: np.ndarray, values: np.ndarray) -> Self:
        """Returns a recommender with new likes of one viewer and without likes of other viewers."""
        return dataclasses.replace(self, likes=self.likes.replace_all(viewer, titles, values))

    def _select_largest(self, near_values: np.ndarray, indices: np.ndarray) -> np.ndarray:
        """Returns the indices of the ``settings.nearest`` largest values, descending, without zeros."""
        order = indices[np.argsort(-near_values[indices], kind="stable")][: self.settings.nearest]
        return order[near_values[order] > 0]

    def _score_likes(self, near_values: np.ndarray) -> np.ndarray:
        """Computes liked(t) of each title from the nearness of a viewer's likes, (likes, titles)."""
        count = min(self.settings.nearest, len(near_values))
        if count < len(near_values):
            near_values = np.partition(near_values, len(near_values) - count, axis=0)[-count:]
        return np.sqrt(np.square(near_values).sum(axis=0) / np.float32(max(count, 1)))

    def _likes_of(self, viewers: np.ndarray) -> tuple[Likes, np.ndarray]:
        """Returns the concatenated likes of viewers, and the offset of each viewer."""
        begins = self.likes.offsets[viewers]
        lengths = self.likes.offsets[viewers + 1] - begins
        starts = offsets_of(lengths)
        rows = np.arange(starts[-1]) + np.repeat(begins - starts[:-1], lengths)
        return self.likes.take(rows), starts


@configurable
class NearestLikes:
    """Scores titles by the nearest likes and the nearest dislike, with a margin."""

    name: Literal["nearest_likes"] = "nearest_likes"
    nearest: int = setting(5, _NEAREST, ge=1)
    margin: float = setting(0.05, _MARGIN, ge=0, le=1)

    def fit(self, likes: Likes, titles: Titles) -> FittedNearestLikes:
        """Fits the recommender. Raises a ValueError if the likes refer to titles outside ``titles``."""
        titles.check(likes)
        distinct_likes = likes.deduplicate()
        title_popularity = popularity(distinct_likes, titles)
        return FittedNearestLikes(
            self, distinct_likes, titles.vectors, crowds(titles.vectors), title_popularity
        )
