"""Recommends titles that are similar to some of the titles that a viewer likes. Viewers have several tastes.

The mean vector of all liked titles would lie between the tastes, such as between crime and cookery. Instead,
the liked titles that are nearest to a title determine its score. near(l, t) is the nearness of a liked title
l to a title t (nearness.py), and m is the setting ``nearest``, or the number of liked titles if that is less:

    liked(t)    = √(sum of the m largest near(l, t)² over the liked titles l / m)
    disliked(t) = the largest near(d, t) over the disliked titles d
    score(t)    = liked(t) - max(0, disliked(t) - max(0, liked(t) - margin)) + w · popularity(t)

w is POPULARITY_WEIGHT. Because of the squares, a title near a single liked title gets a higher score than a
title between two liked titles. A disliked title lowers the score of a title unless liked(t) exceeds
disliked(t) by the margin. A viewer who dislikes one football match and likes ten still gets football, but not
matches that are similar to the disliked match. Only the sign of the value of a like is used.
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
TILE_SIZE = 1 << 25  # entries of the nearness matrix that are computed at once: 128 MiB
_NEAREST = (
    "Number m of the nearest likes that determine a score; a large m favours the taste with most likes."
)
_MARGIN = (
    "A dislike lowers the score unless the nearness of the likes exceeds that of the dislike by this much."
)


@dataclass(frozen=True)
class FittedNearestLikes:
    """Fitted recommender that scores titles by their nearness to the rated titles of a viewer."""

    settings: "NearestLikes"
    likes: Likes  # without duplicates, sorted by viewer
    vectors: np.ndarray  # float32 (titles, dim)
    crowd: np.ndarray  # float32 (titles,), how many similar titles surround a title (nearness.py)
    popularity: np.ndarray  # float32 (titles,)

    def scores(self, viewers: np.ndarray, titles: np.ndarray) -> np.ndarray:
        """Computes the scores of titles for viewers, float32 (viewers, titles)."""
        viewer_likes, offsets = self._likes_of(viewers)
        rated_titles, rated_indices = np.unique(viewer_likes.titles, return_inverse=True)
        is_liked = viewer_likes.values > 0
        scores = np.empty((len(viewers), len(titles)), dtype=np.float32)
        chunk_size = max(TILE_SIZE // max(len(rated_titles), 1), 64)
        for start in range(0, len(titles), chunk_size):
            chunk = titles[start : start + chunk_size]
            near_values = nearness(self.vectors, self.crowd, rated_titles, chunk)
            title_popularity = POPULARITY_WEIGHT * self.popularity[chunk]
            for viewer, (begin, end) in enumerate(pairwise(offsets.tolist())):
                indices, is_liked_by_viewer = rated_indices[begin:end], is_liked[begin:end]
                liked = self._score_likes(near_values[indices[is_liked_by_viewer]])
                score = liked + title_popularity
                if not is_liked_by_viewer.all():
                    disliked = near_values[indices[~is_liked_by_viewer]].max(axis=0)
                    score -= np.maximum(0, disliked - np.maximum(0, liked - self.settings.margin))
                scores[viewer, start : start + chunk_size] = score
        return scores

    def shares(self, viewer: int, titles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the rows of a viewer's liked titles, and their shares of each score (liked, titles).

        A share is proportional to the squared nearness of the liked title. The shares of a title sum to 1, or
        are all 0 if no liked title is near.
        """
        viewer_likes, _ = self._likes_of(np.array([viewer]))
        liked = viewer_likes.titles[viewer_likes.values > 0]
        near_values = nearness(self.vectors, self.crowd, liked, titles)
        np.square(near_values, out=near_values)
        similarity_sums = near_values.sum(axis=0)
        return liked, np.divide(near_values, similarity_sums, out=near_values, where=similarity_sums > 0)

    def reasons_for(self, viewer: int, title: int) -> list[Reason]:
        """Returns the liked titles nearest to a title, and the nearest disliked title if it lowers the score.

        Shares are proportional to the squared nearness. Reasons are sorted by share, the largest first.
        """
        viewer_likes, _ = self._likes_of(np.array([viewer]))
        near_values = nearness(self.vectors, self.crowd, viewer_likes.titles, np.array([title]))[:, 0]
        is_liked = viewer_likes.values > 0
        liked = self._select_largest(near_values, np.flatnonzero(is_liked))
        nearest_dislike = self._select_largest(near_values, np.flatnonzero(~is_liked))[:1]
        count = max(min(self.settings.nearest, int(is_liked.sum())), 1)
        like_score = np.sqrt(np.square(near_values[liked]).sum() / count)
        lowers_score = near_values[nearest_dislike] > max(0, like_score - self.settings.margin)
        indices = np.concatenate([liked, nearest_dislike[lowers_score]])
        indices = indices[np.argsort(-near_values[indices], kind="stable")]
        shares = np.square(near_values[indices]) / np.square(near_values[indices]).sum()
        return [
            Reason(int(viewer_likes.titles[index]), float(share), bool(is_liked[index]))
            for index, share in zip(indices, shares, strict=True)
        ]

    def with_likes(self, viewer: int, titles: np.ndarray, values: np.ndarray) -> Self:
        """Returns a recommender with new likes of one viewer, which is valid only for this viewer."""
        return dataclasses.replace(self, likes=self.likes.replace_all(viewer, titles, values))

    def _select_largest(self, near_values: np.ndarray, indices: np.ndarray) -> np.ndarray:
        """Returns the ``settings.nearest`` indices with the largest values above 0, in descending order."""
        sorted_indices = indices[np.argsort(-near_values[indices], kind="stable")][: self.settings.nearest]
        return sorted_indices[near_values[sorted_indices] > 0]

    def _score_likes(self, near_values: np.ndarray) -> np.ndarray:
        """Computes liked(t) of all titles from the nearness of the liked titles (liked, titles)."""
        count = min(self.settings.nearest, len(near_values))
        if count < len(near_values):
            near_values = np.partition(near_values, len(near_values) - count, axis=0)[-count:]
        return np.sqrt(np.square(near_values).sum(axis=0) / np.float32(max(count, 1)))

    def _likes_of(self, viewers: np.ndarray) -> tuple[Likes, np.ndarray]:
        """Returns the concatenated likes of viewers, and their offsets by viewer, int64 (viewers + 1,)."""
        begins = self.likes.offsets[viewers]
        lengths = self.likes.offsets[viewers + 1] - begins
        offsets = offsets_of(lengths)
        rows = np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], lengths)
        return self.likes.take(rows), offsets


@configurable
class NearestLikes:
    """Scores titles by their nearness to the titles that a viewer likes or dislikes."""

    name: Literal["nearest_likes"] = "nearest_likes"
    nearest: int = setting(5, _NEAREST, ge=1)
    margin: float = setting(0.05, _MARGIN, ge=0, le=1)

    def fit(self, likes: Likes, titles: Titles) -> FittedNearestLikes:
        """Fits the recommender. Raises a ValueError if the likes refer to titles outside ``titles``."""
        titles.check(likes)
        latest_likes, vectors = likes.deduplicate(), titles.vectors
        title_popularity = popularity(latest_likes, titles)
        return FittedNearestLikes(self, latest_likes, vectors, crowds(vectors), title_popularity)
