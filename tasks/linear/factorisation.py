"""Matrix factorisation with biases.

    r = ⟨u, v⟩ + b_u + b_v + b₀        u, v: factors of the user and the item; b₀: mean of the first ratings

Stochastic gradient descent on ½ (r − rating)² + ½ λ (|u|² + |v|² + b_u² + b_v²), one rating after the other,
ratings in blocks (tasks/linear/rating_blocks.py). Koren, Bell, Volinsky. Matrix Factorization Techniques for
Recommender Systems. IEEE Computer 42(8), 2009, equations 4 and 5.

A row of memory is a user's or item's factors and behind them its bias, padded to cache lines: no two threads
write to one line. Rows do not go through ``storage/tables``, whose gathers and updates of batches take 26
times as long as this loop (128 factors).
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import numpy as np

from storage.formats.linear_model import read_linear_model, write_linear_model
from tasks.compiled import compiled
from tasks.form import configurable, setting
from tasks.linear.rating_blocks import BLOCKS, RatingBlocks, in_blocks
from tasks.linear.ratings import Ratings, numbered

MODEL = "Factorisation"
LINE = 16  # float32 in a cache line


@configurable
class FactorisationSettings:
    """Settings of a factorisation."""

    dim: int = setting(128, "Factors of a user or item; 0: biases alone", ge=0, le=4096)
    epochs: int = setting(50, "Passes over the ratings of fit", ge=1)
    learning_rate: float = setting(0.01, "Step", gt=0)
    weight_decay: float = setting(0.1, "λ: decay of factors and biases at each rating", ge=0)
    seed: int = setting(0, "Of the factors before training", ge=0)
    threads: int = setting(1, "CPU threads; their number does not change the result", ge=1, le=BLOCKS)


class Factorisation:
    """Factors and biases of users and items, by name.

    One seed gives the same bits, whatever the number of threads.

    Attributes:
        settings: As given.
        mean: b₀; None before the first ratings.
        users: Rows of users.
        items: Rows of items.
        rmse: Root mean squared error of each epoch's predictions, each made before its rating was learnt.
    """

    def __init__(self, settings: FactorisationSettings | None = None) -> None:
        self.settings = settings or FactorisationSettings()
        self.mean: float | None = None
        self.users, self.items = (Rows(self.settings.dim, (self.settings.seed, side)) for side in (0, 1))
        self.rmse: list[float] = []

    def fit(self, ratings: Ratings) -> Self:
        """Learns anew, ``settings.epochs`` passes."""
        self.__init__(self.settings)
        return self.partial_fit(ratings, self.settings.epochs)

    def partial_fit(self, ratings: Ratings, epochs: int = 1) -> Self:
        """Continues with these ratings; users and items that are new get rows.

        Raises:
            ValueError: The factors diverged; the model is of no more use.
        """
        if self.mean is None:
            self.mean = float(ratings.values.mean(dtype=np.float64))
        users, items = self.users.add(ratings.user_names), self.items.add(ratings.item_names)
        rows = users.take(ratings.users), items.take(ratings.items)
        blocks = in_blocks(*rows, ratings.values, np.random.default_rng(self.settings.seed))
        with ThreadPoolExecutor(self.settings.threads) as pool:
            for _ in range(epochs):
                self.rmse.append(self.epoch(blocks, pool))
        return self

    def epoch(self, blocks: RatingBlocks, pool: ThreadPoolExecutor) -> float:
        """One pass over ratings of known rows; the root mean squared error, each before its step."""
        learn = compiled(_learn, fastmath=True)
        settings, mean = self.settings, np.float32(self.mean)
        dim, rate, decay = settings.dim, np.float32(settings.learning_rate), np.float32(settings.weight_decay)

        def run(block: tuple[np.ndarray, np.ndarray, np.ndarray]) -> float:
            return learn(*block, self.users.values, self.items.values, dim, rate, decay, mean)

        both = map if self.settings.threads == 1 else pool.map
        error = sum(sum(both(run, stage)) for stage in blocks.stages())
        if not np.isfinite(error):
            problem = f"the factors diverged at learning_rate {self.settings.learning_rate}"
            raise ValueError(f"{problem}; choose a lower one, or scale the ratings (mean {self.mean:.3g})")
        return (error / len(blocks.values)) ** 0.5

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """Ratings of pairs, float32 (pairs,): names of users and of items, as in ``Ratings.of``.

        What is unknown counts zero: an unknown user's rating is b_v + b₀.
        """
        rows, columns = self.users.find(users), self.items.find(items)
        if len(rows) != len(columns):
            raise ValueError(f"{len(rows)} users and {len(columns)} items; give one item for each user")
        scores = np.float32(self._known_mean()) + self.users.bias_of(rows) + self.items.bias_of(columns)
        known = np.flatnonzero((rows >= 0) & (columns >= 0))
        for part in np.array_split(known, len(known) // 4096 + 1):  # gathered rows stay in cache
            left, right = self.users.factors[rows[part]], self.items.factors[columns[part]]
            scores[part] += np.einsum("ij,ij->i", left, right)
        return scores

    def recommend(
        self, user: str | int, k: int, without: Iterable[str | int] = ()
    ) -> list[tuple[str, float]]:
        """The k items of the highest predicted ratings, with these, best first; fewer where there are fewer.

        Args:
            user: A user's name; one that is unknown gets the items of the highest biases.
            k: How many.
            without: Names of items to leave out, such as those the user has seen; others may be among them.
        """
        row = self.users.find([user])
        scores = np.float32(self._known_mean()) + self.users.bias_of(row) + self.items.biases
        if row[0] >= 0:
            scores += self.items.factors @ self.users.factors[row[0]]
        left_out = self.items.find(list(without))
        scores[left_out[left_out >= 0]] = -np.inf
        best = np.argsort(-scores, kind="stable")[: max(k, 0)]
        return [(self.items.names[i], float(scores[i])) for i in best if scores[i] > -np.inf]

    def save(self, folder: Path) -> None:
        """Replaces the folder (storage/formats/linear_model.py)."""
        arrays = {"mean": np.array([self._known_mean()])}
        for side, rows in (("user", self.users), ("item", self.items)):
            arrays |= {f"{side}_factors": rows.factors, f"{side}_biases": rows.biases}
        names = {"users": self.users.names, "items": self.items.names}
        write_linear_model(folder, MODEL, arrays, names, asdict(self.settings))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """A saved model, which continues as the saved one would."""
        files = read_linear_model(folder, MODEL)
        model = cls(FactorisationSettings(**files.settings))
        model.mean = float(files.arrays["mean"][0])
        for side, rows in (("user", model.users), ("item", model.items)):
            rows.add(files.names[f"{side}s"])
            rows.factors[:] = files.arrays[f"{side}_factors"]
            rows.biases[:] = files.arrays[f"{side}_biases"]
        return model

    def _known_mean(self) -> float:
        if self.mean is None:
            raise ValueError("the factorisation has learnt nothing yet; call fit or partial_fit with ratings")
        return self.mean


class Rows:
    """Factors and biases of users, or of items, by name.

    Attributes:
        names: Of the rows.
        values: float32 (rows, dim + 1 padded to cache lines), aligned to them: factors, bias, zeros.
        factors: float32 (rows, dim), a view.
        biases: float32 (rows,), a view.
    """

    def __init__(self, dim: int, seed: tuple[int, ...]) -> None:
        self._dim, self._seed = dim, seed
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._place(np.empty((0, dim + 1), np.float32))

    def add(self, names: Sequence[str]) -> np.ndarray:
        """The row of each name, int32 (names,); new ones get small normal factors and bias 0."""
        before = len(self.names)
        for name in names:
            if self._numbers.setdefault(name, len(self.names)) == len(self.names):
                self.names.append(name)
        if new := len(self.names) - before:
            rows = np.zeros((new, self._dim + 1), np.float32)
            drawn = np.random.default_rng([*self._seed, before])
            rows[:, : self._dim] = 0.1 * drawn.standard_normal((new, self._dim), dtype=np.float32)
            self._place(np.concatenate([self.values[:, : self._dim + 1], rows]))
        return np.array([self._numbers[name] for name in names], np.int32)

    def find(self, names: Any) -> np.ndarray:
        """The row of each name, int32 (names,); -1 of unknown ones."""
        ids, known = numbered(names)
        return np.array([self._numbers.get(name, -1) for name in known], np.int32)[ids]

    def bias_of(self, rows: np.ndarray) -> np.ndarray:
        """The bias of each row, float32 (rows,); 0 of row -1."""
        return np.append(self.biases, np.float32(0))[rows]

    def _place(self, rows: np.ndarray) -> None:
        width = -(-rows.shape[1] // LINE) * LINE
        memory = np.zeros(len(rows) * width + LINE, np.float32)
        begin = -(memory.ctypes.data // memory.itemsize) % LINE
        self.values = memory[begin : begin + len(rows) * width].reshape(len(rows), width)
        self.values[:, : rows.shape[1]] = rows
        self.factors, self.biases = self.values[:, : self._dim], self.values[:, self._dim]


def _learn(
    users: Any,
    items: Any,
    ratings: Any,
    user_rows: Any,
    item_rows: Any,
    dim: int,
    rate: Any,
    decay: Any,
    mean: Any,
) -> float:
    """One pass over ratings; the sum of squared errors, each before its step."""
    keep = np.float32(1) - rate * decay
    total = 0.0
    for n in range(len(users)):
        user, item = user_rows[users[n]], item_rows[items[n]]
        product = np.float32(0)
        for f in range(dim):
            product += user[f] * item[f]
        error = ratings[n] - (mean + user[dim] + item[dim] + product)
        total += error * error
        step = rate * error
        for f in range(dim):
            x, y = user[f], item[f]
            user[f] = keep * x + step * y
            item[f] = keep * y + step * x
        user[dim] = keep * user[dim] + step
        item[dim] = keep * item[dim] + step
    return total
