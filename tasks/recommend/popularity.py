"""What most viewers like: a baseline, and the fallback for viewers of whom nothing is known."""

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from tasks.form import configurable
from tasks.recommend.likes import Likes, Reason, Titles


def popularity(likes: Likes, titles: Titles) -> np.ndarray:
    """log(1 + viewers who like a title + a share below 1 that grows with its airings): float32 (titles,)."""
    liked = np.bincount(likes.titles[likes.values > 0], minlength=len(titles))
    return np.log1p(liked + titles.airings / (1 + titles.airings.max(initial=0))).astype(np.float32)


@dataclass(frozen=True)
class FittedPopularity:
    """Popularity of each title, float32 (titles,)."""

    popularity: np.ndarray

    def scores(self, viewers: np.ndarray, titles: np.ndarray) -> np.ndarray:
        """The same for all viewers: float32 (viewers, titles)."""
        return np.tile(self.popularity[titles], (len(viewers), 1))

    def shares(self, viewer: int, titles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """No like of the viewer decides."""
        return np.zeros(0, np.int32), np.zeros((0, len(titles)), np.float32)

    def why(self, viewer: int, title: int) -> list[Reason]:
        """No like of the viewer decides."""
        return []

    def revised(self, viewer: int, titles: np.ndarray, values: np.ndarray) -> Self:
        """One viewer counts for nothing."""
        return self


@configurable
class Popularity:
    """Ranks titles by how many viewers like them, equal ones by airings."""

    name: Literal["popularity"] = "popularity"

    def fit(self, likes: Likes, titles: Titles) -> FittedPopularity:
        """Counts; a ValueError where likes are of unknown titles."""
        titles.check(likes)
        return FittedPopularity(popularity(likes.settled(), titles))
