"""What the channels of liked titles show: a baseline that knows no title."""

import dataclasses
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from storage.arrays import Ragged
from tasks.form import configurable
from tasks.recommend.likes import Likes, Reason, Titles
from tasks.recommend.popularity import popularity

POPULAR = 0.01


@dataclass(frozen=True)
class FittedChannelHabits:
    """Settled likes and where each viewer's begin; channels and popularity of titles."""

    likes: Likes
    offsets: np.ndarray
    channels: Ragged
    popularity: np.ndarray

    def scores(self, viewers: np.ndarray, titles: np.ndarray) -> np.ndarray:
        """Mean share of the viewer's likes that a title's channels show: float32 (viewers, titles)."""
        popular = POPULAR * self.popularity[titles]
        found = np.array([self._shown(viewer, titles)[1].sum(axis=0) for viewer in viewers])
        return found.reshape(len(viewers), len(titles)).astype(np.float32) + popular

    def shares(self, viewer: int, titles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A viewer's likes, and each one's share of each title's score: float32 (likes, titles)."""
        liked, shown = self._shown(viewer, titles)
        total = shown.sum(axis=0)
        return liked, np.divide(shown, total, out=shown, where=total > 0)

    def why(self, viewer: int, title: int) -> list[Reason]:
        """Likes on the same channels, by falling share."""
        liked, shares = self.shares(viewer, np.array([title]))
        order = np.argsort(-shares[:, 0], kind="stable")
        return [Reason(int(liked[i]), float(shares[i, 0]), True) for i in order if shares[i, 0] > 0]

    def revised(self, viewer: int, titles: np.ndarray, values: np.ndarray) -> Self:
        """As if this viewer's likes were others, int32 and float32 (likes,); for this viewer alone."""
        viewers, times = np.full(len(titles), viewer, dtype=np.int32), np.zeros(len(titles))
        likes = Likes(viewers, titles, values, times, self.likes.viewer_count).settled()
        return dataclasses.replace(self, likes=likes, offsets=likes.offsets())

    def _shown(self, viewer: int, titles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A viewer's likes, and how much of a title's channels each stands for: float32 (likes, titles)."""
        own = self.likes.take(np.arange(self.offsets[viewer], self.offsets[viewer + 1]))
        liked = own.titles[own.values > 0]
        width = int(self.channels.values.max(initial=-1)) + 1
        of_likes, of_titles = (
            self.channels.take(rows).members(width).astype(np.float32) for rows in (liked, titles)
        )
        of_likes /= np.maximum(of_likes.sum(axis=1, keepdims=True), 1)
        of_titles /= np.maximum(of_titles.sum(axis=1, keepdims=True), 1)
        return liked, of_likes @ of_titles.T / np.float32(max(len(liked), 1))


@configurable
class ChannelHabits:
    """Ranks titles by how many of the viewer's likes their channels show; no dislike counts."""

    name: Literal["channel_habits"] = "channel_habits"

    def fit(self, likes: Likes, titles: Titles) -> FittedChannelHabits:
        """Orders the likes; a ValueError where they are of unknown titles."""
        titles.check(likes)
        own = likes.settled()
        return FittedChannelHabits(own, own.offsets(), titles.channels, popularity(own, titles))
