"""Selects the titles of a training epoch and their order; the objective forms batches from the result."""

from typing import Literal

import numpy as np

from storage.formats.corpus import OpenCorpus
from tasks.form import configurable, setting

_BATCH_SIZE: int = setting(1024, "Consecutive titles from which the objective forms batches", ge=2)
_FRACTION: float = setting(0.5, "Fraction of the titles that an epoch uses", gt=0, le=1)


@configurable
class ByGroup:
    """Uses each title once per epoch, in batches that the objective forms."""

    name: Literal["by_group"] = "by_group"

    def batches(self, rows: np.ndarray, corpus: OpenCorpus, rng: np.random.Generator) -> list[np.ndarray]:
        """Returns all rows as one array, of which the objective forms batches."""
        return [rows]


@configurable
class Sequential:
    """Uses each title once per epoch, in the order of the corpus (sorted by show key)."""

    name: Literal["sequential"] = "sequential"
    batch_size: int = _BATCH_SIZE

    def batches(self, rows: np.ndarray, corpus: OpenCorpus, rng: np.random.Generator) -> list[np.ndarray]:
        """Splits the rows in their order into arrays of ``batch_size`` titles."""
        return _split_rows(rows, self.batch_size)


@configurable
class Shuffled:
    """Uses each title once per epoch, in a new random order."""

    name: Literal["shuffled"] = "shuffled"
    batch_size: int = _BATCH_SIZE

    def batches(self, rows: np.ndarray, corpus: OpenCorpus, rng: np.random.Generator) -> list[np.ndarray]:
        """Splits a random permutation of the rows into arrays of ``batch_size`` titles."""
        return _split_rows(rng.permutation(rows), self.batch_size)


@configurable
class Subset:
    """Uses a new random subset of the titles in each epoch, in batches that the objective forms."""

    name: Literal["subset"] = "subset"
    fraction: float = _FRACTION

    def batches(self, rows: np.ndarray, corpus: OpenCorpus, rng: np.random.Generator) -> list[np.ndarray]:
        """Draws a fraction of the rows without replacement, and returns them sorted as one array."""
        return [np.sort(rng.choice(rows, _titles_in_fraction(rows, self.fraction), replace=False))]


@configurable
class ByRarity:
    """Uses a new random subset of the titles in each epoch, with preference for titles with rare labels.

    The weight of a title is w = (number of titles with its rarest label)^-exponent. The titles with the
    largest log(u)/w are used, where u is uniformly random (weighted sampling without replacement).

    References:
        Efraimidis and Spirakis: Weighted random sampling with a reservoir. Inf. Process. Lett. 97, 2006.
    """

    name: Literal["by_rarity"] = "by_rarity"
    fraction: float = _FRACTION
    exponent: float = setting(
        0.5, "Preference for rare labels; 0: none; 1: all labels equally often", ge=0, le=2
    )

    def batches(self, rows: np.ndarray, corpus: OpenCorpus, rng: np.random.Generator) -> list[np.ndarray]:
        """Draws a fraction of the rows by weighted sampling, and returns them sorted as one array."""
        labels = corpus.labels.take(rows)
        sizes = np.bincount(labels.values)
        rarest = np.full(len(rows), len(rows), dtype=np.int64)
        np.minimum.at(rarest, labels.row_ids, sizes[labels.values])
        keys = np.log(rng.random(len(rows))) * rarest.astype(np.float64) ** self.exponent
        first = len(rows) - _titles_in_fraction(rows, self.fraction)
        return [np.sort(rows[np.argpartition(keys, first)[first:]])]


Order = ByGroup | Sequential | Shuffled | Subset | ByRarity


def _split_rows(rows: np.ndarray, size: int) -> list[np.ndarray]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _titles_in_fraction(rows: np.ndarray, fraction: float) -> int:
    """Returns the number of titles in a fraction of ``rows``: at least two, if there are so many."""
    return min(len(rows), max(2, round(fraction * len(rows))))
