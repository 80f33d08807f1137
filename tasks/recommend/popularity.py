"""Recommends popular titles: a baseline, and the fallback for viewers without likes."""

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from tasks.form import configurable
from tasks.recommend.likes import Likes, Reason, Titles


def popularity(likes: Likes, titles: Titles) -> np.ndarray:
    """Computes the popularity of titles, float32: log(1 + viewers + airings / (1 + maximum of airings)).

    ``viewers`` is the number of viewers who like a title.
    """
    liked = np.bincount(likes.titles[likes.values > 0], minlength=len(titles))
    return np.log1p(liked + titles.airings / (1 + titles.airings.max(initial=0))).astype(np.float32)


@dataclass(frozen=True)
class FittedPopularity:
    """Fitted recommender that scores titles by their popularity."""

    popularity: np.ndarray  # float32 (titles,)

    def scores(self, viewers: np.ndarray, titles: np.ndarray) -> np.ndarray:
        """Returns the popularity of titles as scores, which are equal for all viewers, (viewers, titles)."""
        return np.tile(self.popularity[titles], (len(viewers), 1))

    def shares(self, viewer: int, titles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns empty arrays, because the score does not depend on the viewer."""
        return np.zeros(0, np.int32), np.zeros((0, len(titles)), np.float32)

    def reasons_for(self, viewer: int, title: int) -> list[Reason]:
        """Returns no reasons, because the score does not depend on the viewer."""
        return []

    def with_likes(self, viewer: int, titles: np.ndarray, values: np.ndarray) -> Self:
        """Returns the recommender unchanged, because the likes of a single viewer are ignored."""
        return self


@configurable
class Popularity:
    """Ranks titles by the number of viewers who like them, then by their number of airings."""

    name: Literal["popularity"] = "popularity"

    def fit(self, likes: Likes, titles: Titles) -> FittedPopularity:
        """Computes popularities. Raises a ValueError if likes refer to titles outside ``titles``."""
        titles.check(likes)
        return FittedPopularity(popularity(likes.deduplicate(), titles))
