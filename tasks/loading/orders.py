"""Which titles an epoch uses, in which order: samplers split the rows, the objective batches each part."""

from typing import Literal

import numpy as np

from storage.formats.corpus import OpenCorpus
from tasks.form import configurable, setting

_BATCH_SIZE: int = setting(1024, "Titles that stay together; the objective forms batches within them", ge=2)
_FRACTION: float = setting(0.5, "Fraction of the titles that an epoch uses", gt=0, le=1)


@configurable
class ByGroup:
    """Every title once, in the groups that the objective draws."""

    name: Literal["by_group"] = "by_group"

    def batches(self, rows: np.ndarray, corpus: OpenCorpus, rng: np.random.Generator) -> list[np.ndarray]:
        """All rows at once."""
        return [rows]


@configurable
class Sequential:
    """Every title once, in the order of the corpus (sorted by show key)."""

    name: Literal["sequential"] = "sequential"
    batch_size: int = _BATCH_SIZE

    def batches(self, rows: np.ndarray, corpus: OpenCorpus, rng: np.random.Generator) -> list[np.ndarray]:
        """Rows in order."""
        return _split(rows, self.batch_size)


@configurable
class Shuffled:
    """Every title once, in a random order drawn anew each epoch."""

    name: Literal["shuffled"] = "shuffled"
    batch_size: int = _BATCH_SIZE

    def batches(self, rows: np.ndarray, corpus: OpenCorpus, rng: np.random.Generator) -> list[np.ndarray]:
        """A permutation of the rows."""
        return _split(rng.permutation(rows), self.batch_size)


@configurable
class Subset:
    """A random subset of the titles, drawn anew each epoch, in the groups that the objective draws."""

    name: Literal["subset"] = "subset"
    fraction: float = _FRACTION

    def batches(self, rows: np.ndarray, corpus: OpenCorpus, rng: np.random.Generator) -> list[np.ndarray]:
        """Rows without replacement, in rising order."""
        return [np.sort(rng.choice(rows, _count(rows, self.fraction), replace=False))]


@configurable
class ByRarity:
    """A random subset of the titles without replacement, rare labels preferred.

    Weights are w = (titles of its rarest label)^-exponent; drawn are the largest of log(u)/w, u uniform.

    References:
        Efraimidis and Spirakis: Weighted random sampling with a reservoir. Inf. Process. Lett. 97, 2006.
    """

    name: Literal["by_rarity"] = "by_rarity"
    fraction: float = _FRACTION
    exponent: float = setting(0.5, "0 is uniform; 1 shows labels about equally often", ge=0, le=2)

    def batches(self, rows: np.ndarray, corpus: OpenCorpus, rng: np.random.Generator) -> list[np.ndarray]:
        """Rows in rising order."""
        labels = corpus.labels.take(rows)
        sizes = np.bincount(labels.values)
        rarest = np.full(len(rows), len(rows), dtype=np.int64)
        np.minimum.at(rarest, labels.owners, sizes[labels.values])
        keys = np.log(rng.random(len(rows))) * rarest.astype(np.float64) ** self.exponent
        first = len(rows) - _count(rows, self.fraction)
        return [np.sort(rows[np.argpartition(keys, first)[first:]])]


@configurable
class ByLength:
    """Every title once, titles of similar length together, so that batches are padded little."""

    name: Literal["by_length"] = "by_length"
    batch_size: int = _BATCH_SIZE

    def batches(self, rows: np.ndarray, corpus: OpenCorpus, rng: np.random.Generator) -> list[np.ndarray]:
        """Rows sorted by number of tokens (ties at random), split; the parts are shuffled."""
        shuffled = rng.permutation(rows)
        lengths = corpus.tokens.offsets[shuffled + 1] - corpus.tokens.offsets[shuffled]
        parts = _split(shuffled[np.argsort(lengths, kind="stable")], self.batch_size)
        return [parts[number] for number in rng.permutation(len(parts))]


Order = ByGroup | Sequential | Shuffled | Subset | ByRarity | ByLength


def _split(rows: np.ndarray, size: int) -> list[np.ndarray]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _count(rows: np.ndarray, fraction: float) -> int:
    """Titles in a fraction of them, at least two."""
    return min(len(rows), max(2, round(fraction * len(rows))))
