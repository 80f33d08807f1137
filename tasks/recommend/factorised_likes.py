"""Recommends titles by the nearest likes and by the preferences of similar viewers.

The matrix of the likes of all viewers is factorised (tasks/linear/factorisation.py). It also contains random
pairs of a viewer and a title that the viewer has not rated, which count as 0; without these pairs, nearly all
values would be equal. The score of a title t is

    score(t) = nearest(t) + weight · (⟨u, v_t⟩ + b_t)

nearest(t) is the score of tasks/recommend/nearest_likes.py. v_t and b_t are the factors and the bias of title
t; they are 0 for a title that nobody has rated. The factors u of a viewer are computed by ridge regression of
the viewer's likes on the factors of the rated titles, so changed likes (``with_likes``) need no training:

    u = argmin Σ_l (r_l − b₀ − b_l − ⟨u, v_l⟩)² + decay · likes · ‖u‖²

l runs over the viewer's likes and dislikes, and ``likes`` is their number. r_l is the value of a like, and b₀
is the mean of all values.

The reasons of a recommendation and the shares of liked titles in a score come from the nearest likes only.
The defaults were chosen on validation films of MovieLens (nDCG@10: .2360; with the nearest likes alone .2296,
with the factorisation alone .181).
"""

import dataclasses
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from tasks.form import configurable, setting
from tasks.recommend.likes import Likes, Reason, Titles
from tasks.recommend.nearest_likes import FittedNearestLikes, NearestLikes

LEARNING_RATE = 0.05  # learning rate of the factorisation
UNRATED_PER_LIKE = 3  # random pairs of viewer and title per like, which count as 0; 8 were not better


@dataclass(frozen=True)
class FittedFactorisedLikes:
    """Fitted recommender that combines the nearest likes with the factors of titles."""

    settings: "FactorisedLikes"
    nearest: FittedNearestLikes
    factors: np.ndarray  # float32 (titles, dim), 0 for titles without likes
    biases: np.ndarray  # float32 (titles,), 0 for titles without likes
    mean: float  # mean of the values of all likes and of the pairs that count as 0

    def scores(self, viewers: np.ndarray, titles: np.ndarray) -> np.ndarray:
        """Computes the scores of titles for viewers, float32 (viewers, titles)."""
        viewer_factors = np.empty((len(viewers), self.factors.shape[1]), dtype=np.float32)
        for index, viewer in enumerate(viewers):
            viewer_factors[index] = self._viewer_factors(viewer)
        predictions = viewer_factors @ self.factors[titles].T + self.biases[titles]
        return self.nearest.scores(viewers, titles) + np.float32(self.settings.weight) * predictions

    def shares(self, viewer: int, titles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the liked titles of a viewer, and their shares of the nearest-likes score of each title."""
        return self.nearest.shares(viewer, titles)

    def reasons_for(self, viewer: int, title: int) -> list[Reason]:
        """Returns the likes that are nearest to a title, and the nearest dislike if it lowers the score."""
        return self.nearest.reasons_for(viewer, title)

    def with_likes(self, viewer: int, titles: np.ndarray, values: np.ndarray) -> Self:
        """Returns a recommender with other likes of one viewer and the same factors of titles."""
        return dataclasses.replace(self, nearest=self.nearest.with_likes(viewer, titles, values))

    def _viewer_factors(self, viewer: int) -> np.ndarray:
        """Computes the factors of a viewer, float64 (dim,), or zeros if no rated title has factors."""
        likes = self.nearest.likes
        rows = slice(likes.offsets[viewer], likes.offsets[viewer + 1])
        title_factors = self.factors[likes.titles[rows]].astype(np.float64)
        if not title_factors.any():
            return np.zeros(title_factors.shape[1])
        targets = likes.values[rows] - self.mean - self.biases[likes.titles[rows]]
        penalty = self.settings.decay * len(title_factors) * np.eye(title_factors.shape[1])
        return np.linalg.solve(title_factors.T @ title_factors + penalty, title_factors.T @ targets)


@configurable
class FactorisedLikes:
    """Scores titles by the nearest likes and by a factorisation of the likes of all viewers."""

    name: Literal["factorisation"] = "factorisation"
    nearest: NearestLikes = setting(NearestLikes(), "Recommender whose scores the factorisation is added to.")
    weight: float = setting(0.05, "Weight of the factorisation; 0: the nearest likes alone.", ge=0)
    dim: int = setting(16, "Factors of a viewer or title; a multiple of 16 is fast.", ge=1, le=1024)
    epochs: int = setting(40, "Passes over the likes.", ge=1)
    decay: float = setting(0.05, "Weight decay of factors and biases, applied at each like.", gt=0)
    seed: int = setting(0, "Seed of the initial factors and of the pairs that count as 0.", ge=0)

    def fit(self, likes: Likes, titles: Titles) -> FittedFactorisedLikes:
        """Factorises the likes. Raises a ValueError if they refer to titles outside ``titles``."""
        nearest_likes = self.nearest.fit(likes, titles)
        factors = np.zeros((len(titles), self.dim), dtype=np.float32)
        biases = np.zeros(len(titles), dtype=np.float32)
        if not len(nearest_likes.likes):
            return FittedFactorisedLikes(self, nearest_likes, factors, biases, 0.0)
        from tasks.linear.factorisation import Factorisation, FactorisationSettings
        from tasks.linear.ratings import Ratings

        rated_titles, items = np.unique(nearest_likes.likes.titles, return_inverse=True)
        item_count, rng = len(rated_titles), np.random.default_rng(self.seed)
        viewers = nearest_likes.likes.viewers.astype(np.int64)
        rated_codes = viewers * item_count + items  # the code of a pair of viewer and item
        random_viewers = np.repeat(viewers, UNRATED_PER_LIKE)
        random_codes = random_viewers * item_count + rng.integers(item_count, size=len(random_viewers))
        unrated_codes = random_codes[~np.isin(random_codes, rated_codes)]
        users, columns = np.divmod(np.concatenate([rated_codes, unrated_codes]), item_count)
        values = np.concatenate([nearest_likes.likes.values, np.zeros(len(unrated_codes), np.float32)])
        viewer_names = [str(viewer) for viewer in range(likes.viewer_count)]
        title_names = [str(title) for title in rated_titles]
        settings = FactorisationSettings(
            dim=self.dim,
            epochs=self.epochs,
            learning_rate=LEARNING_RATE,
            weight_decay=self.decay,
            seed=self.seed,
        )
        model = Factorisation(settings).fit(Ratings(users, columns, values, viewer_names, title_names))
        factors[rated_titles], biases[rated_titles] = model.items.factors, model.items.biases
        return FittedFactorisedLikes(self, nearest_likes, factors, biases, float(model.mean or 0))
