"""What strategies learn from: who liked which title, and what is known of the titles. NumPy alone."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from storage.arrays import Ragged, offsets_of


@dataclass(frozen=True)
class Likes:
    """Likes and dislikes of viewers, in any order; of several of one viewer and title the latest counts.

    Attributes:
        viewers: int32 (likes,), from 0 to viewer_count - 1.
        titles: int32 (likes,), rows of Titles.
        values: float32 (likes,), from -1 (dislike) to 1 (like): of a rating, or of the share watched.
        times: float64 (likes,), POSIX seconds.
        viewer_count: Viewers, also those without likes.
    """

    viewers: np.ndarray
    titles: np.ndarray
    values: np.ndarray
    times: np.ndarray
    viewer_count: int

    def __post_init__(self) -> None:
        lengths = [len(self.viewers), len(self.titles), len(self.values), len(self.times)]
        if len(set(lengths)) > 1:
            raise ValueError(f"viewers, titles, values and times must have one entry a like, got {lengths}")
        if len(self) and not 0 <= self.viewers.min() <= self.viewers.max() < self.viewer_count:
            found = f"{self.viewers.min()} to {self.viewers.max()}"
            raise ValueError(f"viewers must be from 0 to {self.viewer_count - 1}, got {found}")
        wrong = np.flatnonzero(~((np.abs(self.values) <= 1) & np.isfinite(self.times)))  # NaN is wrong, too
        if len(wrong):
            found = f"value {self.values[wrong[0]]} at time {self.times[wrong[0]]} (like {wrong[0]})"
            raise ValueError(f"values must be from -1 (dislike) to 1 (like) and times finite, got {found}")

    def __len__(self) -> int:
        return len(self.viewers)

    def settled(self) -> Self:
        """The latest like of each viewer and title, ordered by viewer and title, without values of zero."""
        order = np.lexsort((self.values, self.times, self.titles, self.viewers))
        kept = self.take(order)
        last = np.ones(len(kept), dtype=bool)
        last[:-1] = (np.diff(kept.viewers) != 0) | (np.diff(kept.titles) != 0)
        return kept.take(np.flatnonzero(last & (kept.values != 0)))

    def take(self, rows: np.ndarray) -> Self:
        """Some of the likes."""
        viewers, titles, values = self.viewers[rows], self.titles[rows], self.values[rows]
        return type(self)(viewers, titles, values, self.times[rows], self.viewer_count)

    def offsets(self) -> np.ndarray:
        """int64 (viewers + 1,): where each viewer's likes begin, where likes are ordered by viewer."""
        return offsets_of(np.bincount(self.viewers, minlength=self.viewer_count))


@dataclass(frozen=True)
class Titles:
    """What is known of titles.

    Attributes:
        vectors: float32 (titles, dim), unit norm, or zero where nothing is known.
        airings: int64 (titles,), how often each airs.
        channels: Ids of the channels of each title, from 0; rows may be empty.
    """

    vectors: np.ndarray
    airings: np.ndarray
    channels: Ragged

    def __post_init__(self) -> None:
        lengths = [len(self.vectors), len(self.airings), len(self.channels)]
        if len(set(lengths)) > 1:
            found = "{} vectors, {} airings, {} rows of channels".format(*lengths)
            raise ValueError(f"titles need a vector, airings and channels each, got {found}")

    def __len__(self) -> int:
        return len(self.vectors)

    def check(self, likes: Likes) -> None:
        """Raises a ValueError where likes are of titles that are none of these."""
        if len(likes) and not 0 <= likes.titles.min() <= likes.titles.max() < len(self):
            found = f"{likes.titles.min()} to {likes.titles.max()}"
            raise ValueError(f"likes must be of titles 0 to {len(self) - 1}, got {found}")


@dataclass(frozen=True)
class Reason:
    """A title that a viewer liked or disliked, and its share of what decided a score; shares sum to 1."""

    title: int
    share: float
    liked: bool
