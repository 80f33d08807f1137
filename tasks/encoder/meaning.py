"""What a title encoder knows beside its bag: the layer on dense inputs, and the projection for similarity."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from storage.arrays import unit_rows
from storage.shapes import Float32
from tasks.encoder import Encoder
from tasks.sentences import SentenceEncoder
from tasks.sentences.encoder import DESCRIPTION_CHARACTERS
from tasks.sentences.reopen import reopen
from tasks.text.titles import parse_title

WEIGHT = 0.7  # beside the other vector's 1, as readers prefer (docs/log)
DIM = 128  # of a meaning: with as many of the full vector an index holds 256 a title (docs/log)


@dataclass(frozen=True, eq=False)
class Meaning:
    """Titles and descriptions to dense inputs x (tasks/encoder/bags.py), and those to meanings."""

    about: Mapping[str, Any]  # of a Corpus: "encoder", the sentence encoder's strategy, and its "identity"
    layer: Float32[np.ndarray, "dim features"]
    projection: Float32[np.ndarray, "features meaning"]

    @staticmethod
    def fit(about: Mapping[str, Any], layer: np.ndarray, dense: Iterable[np.ndarray]) -> "Meaning":
        """With a projection on the principal directions of x, float32 (titles, features) in blocks, zeros
        left out.
        """
        squares = sum(units.T @ units for units in map(unit_rows, dense))
        directions = np.linalg.eigh(squares)[1][:, ::-1][:, :DIM]
        largest = np.abs(directions).argmax(axis=0)  # a direction's sign is arbitrary: fix it
        directions = directions * np.sign(directions[largest, np.arange(directions.shape[1])])
        return Meaning(about, layer, np.ascontiguousarray(directions, dtype=np.float32))

    @cached_property
    def encoder(self) -> SentenceEncoder | None:
        """The sentence encoder; None, and a warning, where it is missing or another than in training."""
        return reopen(self.about)

    def dense(
        self, bag: Encoder, raw_titles: Sequence[str], descriptions: Sequence[str] = ()
    ) -> Float32[np.ndarray, "titles features"]:
        """Dense inputs x, zero without the encoder; ``descriptions``: one a title, or none at all.

        An encoder has a vector for "???", too; a title without a letter or a digit says nothing.
        """
        none = np.zeros((len(raw_titles), len(self.projection)), dtype=np.float32)
        if self.encoder is None or not len(raw_titles):
            return none
        shown = [parse_title(title).display for title in raw_titles]
        shown = [text if any(map(str.isalnum, text)) else "" for text in shown]
        described = [text[:DESCRIPTION_CHARACTERS] for text in descriptions if any(descriptions)]
        vectors = self.encoder.encode([*shown, *described])  # at once: a call reads all weights
        return bag.dense(vectors[: len(shown)], vectors[len(shown) :] if described else none)

    def project(self, dense: np.ndarray) -> Float32[np.ndarray, "titles meaning"]:
        """Meanings of x, as long as x: a described title's say more."""
        return unit_rows(dense @ self.projection) * np.linalg.norm(dense, axis=1, keepdims=True)
