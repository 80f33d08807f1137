"""Ranks titles by the channels on which liked titles air; a baseline that ignores what titles are about."""

import dataclasses
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from storage.arrays import Ragged
from tasks.form import configurable
from tasks.recommend.likes import Likes, Reason, Titles
from tasks.recommend.popularity import popularity

POPULARITY_WEIGHT = 0.01


@dataclass(frozen=True)
class FittedChannelHabits:
    """Likes without duplicates, and channels and popularity of titles."""

    likes: Likes
    channels: Ragged
    popularity: np.ndarray

    def scores(self, viewers: np.ndarray, titles: np.ndarray) -> np.ndarray:
        """Computes the mean share of liked titles on the channels of a title: float32 (viewers, titles)."""
        popular = POPULARITY_WEIGHT * self.popularity[titles]
        covered = np.array([self._coverage(viewer, titles)[1].sum(axis=0) for viewer in viewers])
        return covered.reshape(len(viewers), len(titles)).astype(np.float32) + popular

    def shares(self, viewer: int, titles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns a viewer's likes and their shares of each title's score: float32 (likes, titles)."""
        liked, coverage = self._coverage(viewer, titles)
        total = coverage.sum(axis=0)
        return liked, np.divide(coverage, total, out=coverage, where=total > 0)

    def why(self, viewer: int, title: int) -> list[Reason]:
        """Returns likes on the same channels, in descending order of share."""
        liked, shares = self.shares(viewer, np.array([title]))
        order = np.argsort(-shares[:, 0], kind="stable")
        return [Reason(int(liked[i]), float(shares[i, 0]), True) for i in order if shares[i, 0] > 0]

    def revised(self, viewer: int, titles: np.ndarray, values: np.ndarray) -> Self:
        """Replaces the likes of one viewer, int32 and float32 (likes,), and drops those of other viewers."""
        return dataclasses.replace(self, likes=self.likes.replace_all(viewer, titles, values))

    def _coverage(self, viewer: int, titles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns a viewer's likes and each one's contribution to the scores: float32 (likes, titles)."""
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
    """Ranks titles by the share of the viewer's likes on their channels; dislikes are ignored."""

    name: Literal["channel_habits"] = "channel_habits"

    def fit(self, likes: Likes, titles: Titles) -> FittedChannelHabits:
        """Sorts the likes; raises a ValueError if they refer to unknown titles."""
        titles.check(likes)
        deduplicated = likes.deduplicate()
        return FittedChannelHabits(deduplicated, titles.channels, popularity(deduplicated, titles))
