"""Defines the inputs of recommenders as NumPy arrays: likes of viewers, and data of titles."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from storage.arrays import offsets_of


@dataclass(frozen=True)
class Likes:
    """Likes and dislikes of viewers, in any order. Only the latest like of a title by a viewer counts.

    Attributes:
        viewers: int32 (likes,), number of the viewer, from 0 to viewer_count - 1.
        titles: int32 (likes,), row of the title in Titles.
        values: float32 (likes,), from -1 (dislike) to 1 (like).
        times: float64 (likes,), time of the like in POSIX seconds.
        viewer_count: Number of viewers, including viewers without likes.
    """

    viewers: np.ndarray
    titles: np.ndarray
    values: np.ndarray
    times: np.ndarray
    viewer_count: int

    def __post_init__(self) -> None:
        lengths = [len(self.viewers), len(self.titles), len(self.values), len(self.times)]
        if len(set(lengths)) > 1:
            raise ValueError(
                f"viewers, titles, values and times must have one entry per like, got lengths {lengths}"
            )
        if len(self) and not 0 <= self.viewers.min() <= self.viewers.max() < self.viewer_count:
            raise ValueError(
                f"viewers must be numbers from 0 to {self.viewer_count - 1}, got {self.viewers.min()} to "
                f"{self.viewers.max()}"
            )
        is_valid = (np.abs(self.values) <= 1) & np.isfinite(self.times)  # False for NaN
        if not is_valid.all():
            index = int(is_valid.argmin())
            raise ValueError(
                "values must be from -1 (dislike) to 1 (like) and times finite, got value "
                f"{self.values[index]} and time {self.times[index]} (like {index})"
            )

    def __len__(self) -> int:
        return len(self.viewers)

    def deduplicate(self) -> Self:
        """Returns the latest like of each viewer and title if it is not 0, sorted by viewer and title."""
        order = np.lexsort((self.values, self.times, self.titles, self.viewers))
        sorted_likes = self.take(order)
        is_last = np.ones(len(sorted_likes), dtype=bool)
        is_last[:-1] = (np.diff(sorted_likes.viewers) != 0) | (np.diff(sorted_likes.titles) != 0)
        return sorted_likes.take(np.flatnonzero(is_last & (sorted_likes.values != 0)))

    def take(self, rows: np.ndarray) -> Self:
        """Returns the likes with the row numbers ``rows``."""
        viewers, titles, values = self.viewers[rows], self.titles[rows], self.values[rows]
        return type(self)(viewers, titles, values, self.times[rows], self.viewer_count)

    def replace_all(self, viewer: int, titles: np.ndarray, values: np.ndarray) -> Self:
        """Returns Likes that contain only the titles and values of one viewer, without duplicates."""
        viewers, times = np.full(len(titles), viewer, dtype=np.int32), np.zeros(len(titles))
        return type(self)(viewers, titles, values, times, self.viewer_count).deduplicate()

    @cached_property
    def offsets(self) -> np.ndarray:
        """Index of the first like of each viewer if likes are sorted by viewer, int64 (viewers + 1,)."""
        return offsets_of(np.bincount(self.viewers, minlength=self.viewer_count))


@dataclass(frozen=True)
class Titles:
    """Data of titles that recommenders use. The row of a title is its index in the arrays.

    Attributes:
        vectors: float32 (titles, dim), with unit norm, or zero if a title has no vector.
        airings: int64 (titles,), number of airings.
    """

    vectors: np.ndarray
    airings: np.ndarray

    def __post_init__(self) -> None:
        if len(self.vectors) != len(self.airings):
            raise ValueError(
                f"every title must have a vector and a number of airings, got {len(self.vectors)} vectors, "
                f"{len(self.airings)} airings"
            )

    def __len__(self) -> int:
        return len(self.vectors)

    def check(self, likes: Likes) -> None:
        """Raises a ValueError if ``likes`` contain rows of titles that do not exist."""
        if len(likes) and not 0 <= likes.titles.min() <= likes.titles.max() < len(self):
            raise ValueError(
                f"likes must refer to titles 0 to {len(self) - 1}, got {likes.titles.min()} to "
                f"{likes.titles.max()}"
            )


@dataclass(frozen=True)
class Reason:
    """Liked or disliked title that contributes to the score of a recommended title."""

    title: int  # row in Titles
    share: float  # its share of the score, 0 to 1
    liked: bool  # whether the viewer liked it; False: disliked
