"""Factorises a matrix of ratings of items by users, with biases.

    r = ⟨u, v⟩ + b_u + b_v + b₀

where u and v are the factors of the user and of the item, and b₀ is the mean of the ratings of the first
call. Training is stochastic gradient descent on ½ (r − rating)² + ½ λ (|u|² + |v|² + b_u² + b_v²), one rating
at a time, block by block (tasks/linear/rating_blocks.py). Koren, Bell, Volinsky. Matrix Factorization
Techniques for Recommender Systems. IEEE Computer 42(8), 2009, equations 4 and 5.

A row stores the factors and the bias of a user or item. Rows are padded to cache lines, so that two threads
never write to the same line. Rows are not in ``storage/tables``, because batched gathers and updates would
take 26 times as long with 128 factors.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self, no_type_check

import numpy as np

from storage.formats.linear_model import read_linear_model, write_linear_model
from tasks.compiled import compiled
from tasks.form import configurable, setting
from tasks.linear.rating_blocks import BLOCKS, RatingBlocks, sort_into_blocks
from tasks.linear.ratings import Ratings, number_names

KIND = "Factorisation"
CACHE_LINE_FLOATS = 16  # number of float32 in a cache line
PREDICTED_PAIRS = 4096  # pairs that are predicted at once, so that their rows stay in the cache


@configurable
class FactorisationSettings:
    """Settings of matrix factorisation."""

    dim: int = setting(128, "Number of factors of a user or item; 0 trains only biases", ge=0, le=4096)
    epochs: int = setting(50, "Passes over the ratings in ``fit``", ge=1)
    learning_rate: float = setting(0.01, "Learning rate", gt=0)
    weight_decay: float = setting(0.1, "λ: weight decay of factors and biases at each rating", ge=0)
    seed: int = setting(0, "Seed of the initial factors", ge=0)
    threads: int = setting(1, "Number of CPU threads, which does not change the result", ge=1, le=BLOCKS)


class Factorisation:
    """Matrix factorisation of ratings: factors and biases of users and of items.

    The result depends on the seed. It is bitwise equal for any number of threads.

    Attributes:
        settings: Hyper-parameters.
        mean: b₀; None before the first training.
        users: Rows of the users.
        items: Rows of the items.
        rmse: Root mean squared error of each epoch. The error of a rating is measured before training on it.
    """

    def __init__(self, settings: FactorisationSettings | None = None) -> None:
        self.settings = settings or FactorisationSettings()
        self.mean: float | None = None
        self.users, self.items = (
            FactorRows(self.settings.dim, (self.settings.seed, side)) for side in (0, 1)
        )
        self.rmse: list[float] = []

    def fit(self, ratings: Ratings) -> Self:
        """Resets the model and trains it for ``settings.epochs`` passes over the ratings."""
        self.__init__(self.settings)
        return self.partial_fit(ratings, self.settings.epochs)

    def partial_fit(self, ratings: Ratings, epochs: int = 1) -> Self:
        """Continues training on further ratings. New users and items get new rows.

        Raises:
            ValueError: The factors diverged; the model is no longer usable.
        """
        if self.mean is None:
            self.mean = float(ratings.values.mean(dtype=np.float64))
        users, items = self.users.add(ratings.user_names), self.items.add(ratings.item_names)
        rng = np.random.default_rng(self.settings.seed)
        blocks = sort_into_blocks(users.take(ratings.users), items.take(ratings.items), ratings.values, rng)
        with ThreadPoolExecutor(self.settings.threads) as pool:
            for _ in range(epochs):
                self.rmse.append(self.epoch(blocks, pool))
        return self

    def epoch(self, blocks: RatingBlocks, pool: ThreadPoolExecutor) -> float:
        """Trains for one pass over the ratings and returns the root mean squared error.

        The error of a rating is measured before training on it.
        """
        train = compiled(_train_block, fastmath=True)
        settings, mean = self.settings, np.float32(self.mean)
        dim, rate, decay = settings.dim, np.float32(settings.learning_rate), np.float32(settings.weight_decay)

        def train_block(block: tuple[np.ndarray, np.ndarray, np.ndarray]) -> float:
            return train(block, self.users.values, self.items.values, dim, rate, decay, mean)

        map_blocks = map if self.settings.threads == 1 else pool.map
        squared_error = sum(sum(map_blocks(train_block, stage)) for stage in blocks.stages())
        if not np.isfinite(squared_error):
            raise ValueError(
                f"the factors diverged at learning_rate {self.settings.learning_rate}; choose a lower "
                f"one, or scale the ratings (mean {self.mean:.3g})"
            )
        return (squared_error / len(blocks.values)) ** 0.5

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """Predicts the rating of each pair of a user and an item, float32 (pairs,).

        Users and items are names. The factors and the bias of an unknown name are 0, so the prediction for an
        unknown user is b_v + b₀.
        """
        rows, columns = self.users.find(users), self.items.find(items)
        if len(rows) != len(columns):
            raise ValueError(f"{len(rows)} users and {len(columns)} items; give one item per user")
        scores = np.float32(self._trained_mean()) + self.users.bias_of(rows) + self.items.bias_of(columns)
        trained_pairs = np.flatnonzero((rows >= 0) & (columns >= 0))
        for pairs in np.array_split(trained_pairs, len(trained_pairs) // PREDICTED_PAIRS + 1):
            user_factors, item_factors = self.users.factors[rows[pairs]], self.items.factors[columns[pairs]]
            scores[pairs] += np.einsum("ij,ij->i", user_factors, item_factors)
        return scores

    def save(self, folder: Path) -> None:
        """Writes the model to a folder, which is replaced (storage/formats/linear_model.py)."""
        arrays = {"mean": np.array([self._trained_mean()])}
        for side, rows in (("user", self.users), ("item", self.items)):
            arrays |= {f"{side}_factors": rows.factors, f"{side}_biases": rows.biases}
        names = {"users": self.users.names, "items": self.items.names}
        write_linear_model(folder, KIND, arrays, names, asdict(self.settings))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Loads a saved model, which can continue training where the saved model stopped."""
        files = read_linear_model(folder, KIND)
        model = cls(FactorisationSettings(**files.settings))
        model.mean = float(files.arrays["mean"][0])
        for side, rows in (("user", model.users), ("item", model.items)):
            rows.add(files.names[f"{side}s"])
            rows.factors[:] = files.arrays[f"{side}_factors"]
            rows.biases[:] = files.arrays[f"{side}_biases"]
        return model

    def _trained_mean(self) -> float:
        if self.mean is None:
            raise ValueError("the factorisation is not trained yet; call fit or partial_fit with ratings")
        return self.mean


class FactorRows:
    """Table of the factors and biases of users, or of items, with a name for each row.

    Attributes:
        names: Name of each row.
        values: Factors, bias and padding zeros of each row, float32 (rows, dim + 1 padded to cache lines).
        factors: Factors of each row, float32 (rows, dim); a view of ``values``.
        biases: Bias of each row, float32 (rows,); a view of ``values``.
    """

    def __init__(self, dim: int, seed: tuple[int, ...]) -> None:
        self._dim, self._seed = dim, seed
        self.names: list[str] = []
        self._row_numbers: dict[str, int] = {}
        self._copy_aligned(np.empty((0, dim + 1), np.float32))

    def add(self, names: Sequence[str]) -> np.ndarray:
        """Returns the row number of each name, int32 (names,).

        A new name gets a row with small random factors and the bias 0.
        """
        old_count = len(self.names)
        for name in names:
            if self._row_numbers.setdefault(name, len(self.names)) == len(self.names):
                self.names.append(name)
        if new_count := len(self.names) - old_count:
            rows = np.zeros((new_count, self._dim + 1), np.float32)
            generator = np.random.default_rng([*self._seed, old_count])
            rows[:, : self._dim] = 0.1 * generator.standard_normal((new_count, self._dim), dtype=np.float32)
            self._copy_aligned(np.concatenate([self.values[:, : self._dim + 1], rows]))
        return np.array([self._row_numbers[name] for name in names], np.int32)

    def find(self, names: Any) -> np.ndarray:
        """Returns the row number of each name, int32 (names,); -1 for unknown names."""
        ids, distinct = number_names(names)
        return np.array([self._row_numbers.get(name, -1) for name in distinct], np.int32)[ids]

    def bias_of(self, rows: np.ndarray) -> np.ndarray:
        """Returns the biases of the rows with the given numbers, float32 (rows,); 0 for row -1."""
        return np.append(self.biases, np.float32(0))[rows]

    def _copy_aligned(self, rows: np.ndarray) -> None:
        """Copies rows, float32 (rows, dim + 1), to new memory that is aligned to cache lines."""
        padded_dim = -(-rows.shape[1] // CACHE_LINE_FLOATS) * CACHE_LINE_FLOATS
        memory = np.zeros(len(rows) * padded_dim + CACHE_LINE_FLOATS, np.float32)
        begin = -(memory.ctypes.data // memory.itemsize) % CACHE_LINE_FLOATS
        self.values = memory[begin : begin + len(rows) * padded_dim].reshape(len(rows), padded_dim)
        self.values[:, : rows.shape[1]] = rows
        self.factors, self.biases = self.values[:, : self._dim], self.values[:, self._dim]


@no_type_check
def _train_block(block, user_rows, item_rows, dim, rate, decay, mean):
    """Trains for one pass over the ratings of a block and returns the sum of the squared errors.

    The error of a rating is measured before training on it.
    """
    users, items, ratings = block
    keep_factor = np.float32(1) - rate * decay
    squared_error_sum = 0.0
    for rating_row in range(len(users)):
        user, item = user_rows[users[rating_row]], item_rows[items[rating_row]]
        product = np.float32(0)
        for column in range(dim):
            product += user[column] * item[column]
        error = ratings[rating_row] - (mean + user[dim] + item[dim] + product)
        squared_error_sum += error * error
        step = rate * error
        for column in range(dim):
            x, y = user[column], item[column]
            user[column] = keep_factor * x + step * y
            item[column] = keep_factor * y + step * x
        user[dim] = keep_factor * user[dim] + step
        item[dim] = keep_factor * item[dim] + step
    return squared_error_sum
