"""Popularity of titles: a baseline, and the fallback for viewers without likes."""

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from tasks.form import configurable
from tasks.recommend.likes import Likes, Reason, Titles


def popularity(likes: Likes, titles: Titles) -> np.ndarray:
    """Computes log(1 + number of likes + airings / (1 + maximum of airings)): float32 (titles,)."""
    liked = np.bincount(likes.titles[likes.values > 0], minlength=len(titles))
    return np.log1p(liked + titles.airings / (1 + titles.airings.max(initial=0))).astype(np.float32)


@dataclass(frozen=True)
class FittedPopularity:
    """Popularity of each title, float32 (titles,)."""

    popularity: np.ndarray

    def scores(self, viewers: np.ndarray, titles: np.ndarray) -> np.ndarray:
        """Returns the same scores for all viewers: float32 (viewers, titles)."""
        return np.tile(self.popularity[titles], (len(viewers), 1))

    def shares(self, viewer: int, titles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns empty arrays, because the score does not depend on the viewer."""
        return np.zeros(0, np.int32), np.zeros((0, len(titles)), np.float32)

    def why(self, viewer: int, title: int) -> list[Reason]:
        """Returns no reasons, because the score does not depend on the viewer."""
        return []

    def revised(self, viewer: int, titles: np.ndarray, values: np.ndarray) -> Self:
        """Returns the same model; the likes of a single viewer are ignored."""
        return self


@configurable
class Popularity:
    """Ranks titles by their number of likes; ties are broken by airings."""

    name: Literal["popularity"] = "popularity"

    def fit(self, likes: Likes, titles: Titles) -> FittedPopularity:
        """Counts the likes; raises a ValueError if they refer to unknown titles."""
        titles.check(likes)
        return FittedPopularity(popularity(likes.deduplicate(), titles))
