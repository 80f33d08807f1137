"""Which titles an epoch shows, and in which company: the family of samplers.

An order gives portions of rows; the objective makes its batches within each portion. One portion of all rows leaves
everything to the objective's own group sampler.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from storage.arrays import Ragged
from tasks.form import FORM

_SIZE = {"description": "Titles a portion: the objective makes its batches of those", "ge": 2}
_SHARE = {"description": "Share of the titles that an epoch shows", "gt": 0, "le": 1}


class Shown(Protocol):
    """What an order may look at: tasks.preprocess.corpus.OpenCorpus has it."""

    @property
    def tokens(self) -> Ragged:
        """Token ids of each title."""
        ...

    @property
    def labels(self) -> Ragged:
        """Label ids of each title."""
        ...


@dataclass(frozen=True, kw_only=True)
class ByGroup:
    """Every title once, in the groups that the objective draws."""

    __pydantic_config__ = FORM
    name: Literal["by_group"] = "by_group"

    def portions(self, rows: np.ndarray, corpus: Shown, rng: np.random.Generator) -> list[np.ndarray]:
        """All rows at once."""
        return [rows]


@dataclass(frozen=True, kw_only=True)
class Sequential:
    """Every title once, as they stand in the corpus (sorted by show key): neighbours in the alphabet learn together."""

    __pydantic_config__ = FORM
    name: Literal["sequential"] = "sequential"
    block: int = field(default=1024, metadata=_SIZE)

    def portions(self, rows: np.ndarray, corpus: Shown, rng: np.random.Generator) -> list[np.ndarray]:
        """Rows in order, cut."""
        return _cut(rows, self.block)


@dataclass(frozen=True, kw_only=True)
class Shuffled:
    """Every title once, in an order drawn anew each epoch."""

    __pydantic_config__ = FORM
    name: Literal["shuffled"] = "shuffled"
    portion: int = field(default=1024, metadata=_SIZE)

    def portions(self, rows: np.ndarray, corpus: Shown, rng: np.random.Generator) -> list[np.ndarray]:
        """A permutation, cut."""
        return _cut(rng.permutation(rows), self.portion)


@dataclass(frozen=True, kw_only=True)
class Subset:
    """A part of the titles, drawn anew each epoch, in the groups that the objective draws: shorter epochs."""

    __pydantic_config__ = FORM
    name: Literal["subset"] = "subset"
    part: float = field(default=0.5, metadata=_SHARE)

    def portions(self, rows: np.ndarray, corpus: Shown, rng: np.random.Generator) -> list[np.ndarray]:
        """Rows without replacement, in rising order."""
        return [np.sort(rng.choice(rows, _count(rows, self.part), replace=False))]


@dataclass(frozen=True, kw_only=True)
class ByRarity:
    """A part of the titles, those of rare labels rather than those of common ones; none twice.

    Drawn without replacement with weights w = (titles of its rarest label)^-exponent: the largest of log(u)/w, u uniform.

    References:
        Efraimidis and Spirakis: Weighted random sampling with a reservoir, Information Processing Letters 97 (2006).
    """

    __pydantic_config__ = FORM
    name: Literal["by_rarity"] = "by_rarity"
    share: float = field(default=0.5, metadata=_SHARE)
    exponent: float = field(default=0.5, metadata={"description": "0 is uniform; 1 shows labels about equally often", "ge": 0, "le": 2})

    def portions(self, rows: np.ndarray, corpus: Shown, rng: np.random.Generator) -> list[np.ndarray]:
        """Rows in rising order."""
        labels = corpus.labels.take(rows)
        sizes = np.bincount(labels.values)
        rarest = np.full(len(rows), len(rows), dtype=np.int64)
        np.minimum.at(rarest, labels.owners, sizes[labels.values])
        keys = np.log(rng.random(len(rows))) * rarest.astype(np.float64) ** self.exponent
        count = _count(rows, self.share)
        return [np.sort(rows[np.argpartition(keys, len(rows) - count)[len(rows) - count :]])]


@dataclass(frozen=True, kw_only=True)
class ByLength:
    """Every title once, long ones beside long ones: what is padded is padded little."""

    __pydantic_config__ = FORM
    name: Literal["by_length"] = "by_length"
    alike: int = field(default=1024, metadata=_SIZE)

    def portions(self, rows: np.ndarray, corpus: Shown, rng: np.random.Generator) -> list[np.ndarray]:
        """Rows sorted by number of tokens (ties by chance), cut, and the portions shuffled."""
        shuffled = rng.permutation(rows)
        lengths = corpus.tokens.offsets[shuffled + 1] - corpus.tokens.offsets[shuffled]
        portions = _cut(shuffled[np.argsort(lengths, kind="stable")], self.alike)
        return [portions[number] for number in rng.permutation(len(portions))]


Order = ByGroup | Sequential | Shuffled | Subset | ByRarity | ByLength


def _cut(rows: np.ndarray, size: int) -> list[np.ndarray]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _count(rows: np.ndarray, share: float) -> int:
    """Titles in a share of them, at least two."""
    return min(len(rows), max(2, round(share * len(rows))))
