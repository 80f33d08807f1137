"""Computes the sentence features x of titles and descriptions, and projects x to meaning vectors."""

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

MEANING_WEIGHT = 0.7  # weight of the meaning vector relative to the title vector, chosen in blind ratings
MEANING_DIM = 128  # dimensions of a meaning vector (docs/log)


@dataclass(frozen=True, eq=False)
class Meaning:
    """Maps titles and descriptions to sentence features x (bag.py), and projects x to meaning vectors."""

    encoder_info: Mapping[str, Any]  # settings ("encoder") and "identity" of the sentence encoder of a Corpus
    layer: Float32[np.ndarray, "dim features"]  # trained layer W, which is multiplied by x
    projection: Float32[np.ndarray, "features meaning"]  # orthonormal columns

    @staticmethod
    def fit(encoder_info: Mapping[str, Any], layer: np.ndarray, features: Iterable[np.ndarray]) -> "Meaning":
        """Fits the projection to the principal directions of x.

        Args:
            encoder_info: Settings and identity of the sentence encoder.
            layer: Trained layer W, float32 (dim, features).
            features: Blocks of the sentence features x, float32 (titles, features); zero rows are ignored.
        """
        gram = sum(units.T @ units for units in map(unit_rows, features))
        directions = np.linalg.eigh(gram)[1][:, ::-1][:, :MEANING_DIM]
        sign_rows = np.abs(directions).argmax(axis=0)  # fixes the sign, which is arbitrary
        directions = directions * np.sign(directions[sign_rows, np.arange(directions.shape[1])])
        return Meaning(encoder_info, layer, np.ascontiguousarray(directions, dtype=np.float32))

    @cached_property
    def encoder(self) -> SentenceEncoder | None:
        """Sentence encoder of training; None, after a warning, if it is missing or has another version."""
        return reopen(self.encoder_info)

    def sentence_features(
        self, bag: Encoder, raw_titles: Sequence[str], descriptions: Sequence[str] = ()
    ) -> Float32[np.ndarray, "titles features"]:
        """Computes the sentence features x of titles, which are zero if the sentence encoder is missing.

        ``descriptions`` contains one description per title, or is empty. A title without letters and digits
        is encoded as empty text, because encoders return nonzero vectors for titles such as "???".
        """
        zeros = np.zeros((len(raw_titles), len(self.projection)), dtype=np.float32)
        if self.encoder is None or not len(raw_titles):
            return zeros
        titles = [parse_title(title).display for title in raw_titles]
        titles = [text if any(map(str.isalnum, text)) else "" for text in titles]
        texts = [text[:DESCRIPTION_CHARACTERS] for text in descriptions] if any(descriptions) else []
        vectors = self.encoder.encode([*titles, *texts])  # in one call, because each call reads all weights
        return bag.sentence_features(vectors[: len(titles)], vectors[len(titles) :] if texts else zeros)

    def project(self, features: np.ndarray) -> Float32[np.ndarray, "titles meaning"]:
        """Projects sentence features x to meaning vectors, which have the norm of x."""
        return unit_rows(features @ self.projection) * np.linalg.norm(features, axis=1, keepdims=True)
