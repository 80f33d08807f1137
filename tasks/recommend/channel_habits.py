"""Recommends titles on the channels of liked titles, a baseline that ignores what titles are about."""

import dataclasses
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from storage.arrays import Ragged
from tasks.form import configurable
from tasks.recommend.likes import Likes, Reason, Titles
from tasks.recommend.popularity import popularity

POPULARITY_WEIGHT = 0.01  # weight of popularity in a score, which orders otherwise equal titles


@dataclass(frozen=True)
class FittedChannelHabits:
    """Fitted recommender by channels."""

    likes: Likes  # without duplicates, sorted by viewer
    channels: Ragged  # ids of the channels of each title
    popularity: np.ndarray  # float32 (titles,)

    def scores(self, viewers: np.ndarray, titles: np.ndarray) -> np.ndarray:
        """Scores a title by the share of a viewer's likes on its channels: float32 (viewers, titles)."""
        title_popularity = POPULARITY_WEIGHT * self.popularity[titles]
        covered = np.array([self._coverage(viewer, titles)[1].sum(axis=0) for viewer in viewers])
        return covered.reshape(len(viewers), len(titles)).astype(np.float32) + title_popularity

    def shares(self, viewer: int, titles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the likes of a viewer, and their shares of each score, float32 (likes, titles)."""
        liked, coverage = self._coverage(viewer, titles)
        total = coverage.sum(axis=0)
        return liked, np.divide(coverage, total, out=coverage, where=total > 0)

    def why(self, viewer: int, title: int) -> list[Reason]:
        """Returns the likes of the viewer on the channels of the title, by descending share."""
        liked, shares = self.shares(viewer, np.array([title]))
        order = np.argsort(-shares[:, 0], kind="stable")
        return [Reason(int(liked[i]), float(shares[i, 0]), True) for i in order if shares[i, 0] > 0]

    def revised(self, viewer: int, titles: np.ndarray, values: np.ndarray) -> Self:
        """Returns a recommender with new likes of one viewer and without likes of other viewers.

        ``titles`` are int32 (likes,), and ``values`` float32 (likes,), from -1 to 1.
        """
        return dataclasses.replace(self, likes=self.likes.replace_all(viewer, titles, values))

    def _coverage(self, viewer: int, titles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the likes of a viewer and their contributions to scores, float32 (likes, titles)."""
        viewer_likes = self.likes.take(np.arange(self.likes.offsets[viewer], self.likes.offsets[viewer + 1]))
        liked = viewer_likes.titles[viewer_likes.values > 0]
        width = int(self.channels.values.max(initial=-1)) + 1
        liked_channels, title_channels = (
            self.channels.take(rows).multi_hot(width).astype(np.float32) for rows in (liked, titles)
        )
        liked_channels /= np.maximum(liked_channels.sum(axis=1, keepdims=True), 1)
        title_channels /= np.maximum(title_channels.sum(axis=1, keepdims=True), 1)
        return liked, liked_channels @ title_channels.T / np.float32(max(len(liked), 1))


@configurable
class ChannelHabits:
    """Ranks titles by the share of the viewer's likes that air on their channels. Ignores dislikes."""

    name: Literal["channel_habits"] = "channel_habits"

    def fit(self, likes: Likes, titles: Titles) -> FittedChannelHabits:
        """Fits the recommender. Raises a ValueError if the likes refer to titles outside ``titles``."""
        titles.check(likes)
        deduplicated = likes.deduplicate()
        return FittedChannelHabits(deduplicated, titles.channels, popularity(deduplicated, titles))
