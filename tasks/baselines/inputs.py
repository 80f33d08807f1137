"""Defines the inputs of the baselines: texts of titles, and the sentence vectors used in training."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from storage.arrays import row_blocks, unit_rows
from storage.shapes import Float, Float32, Int


class NoSentenceVectors(ValueError):
    """Raised if a baseline needs sentence vectors, but the titles have none; the message says what to do."""


@dataclass(frozen=True)
class TitleInputs:
    """Inputs of a baseline: texts, sentence vectors and context tokens (channel, hour …) of titles."""

    texts: Sequence[str]
    dense: Float32[np.ndarray, "titles features"]  # sentence vectors (see dense_inputs), unit norm or zero
    contexts: Sequence[str] = ()  # context tokens of each title, separated by spaces; () if not used
    # Features and neighbours of the titles, which several baselines share (tfidf.py, sentence.py).
    cache: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        rows = len(self.contexts) or len(self.texts)
        if not len(self.texts) == len(self.dense) == rows:
            raise ValueError(
                f"{len(self.texts)} texts, {len(self.dense)} sentence vectors and {rows} contexts; give one "
                "of each per title"
            )

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: np.ndarray) -> Self:
        """Returns the inputs of the titles with the given row numbers."""
        texts = [self.texts[int(row)] for row in rows]
        contexts = [self.contexts[int(row)] for row in rows] if self.contexts else ()
        return type(self)(texts, self.dense[rows], contexts)

    def without_contexts(self) -> Self:
        """Returns the inputs without context tokens, with the same cache."""
        return replace(self, contexts=())

    def require_dense(self) -> Float32[np.ndarray, "titles features"]:
        """Returns the sentence vectors, or raises NoSentenceVectors if there are none."""
        if not self.dense.shape[1]:
            raise NoSentenceVectors(
                "the corpus has no sentence vectors; choose an encoder in preprocess.sentences"
            )
        return self.dense


def join_contexts(contexts: Iterable[Sequence[str] | None]) -> list[str]:
    """Joins the context tokens of each title with spaces. Spaces inside a token become underscores."""
    return [" ".join("_".join(token.split()) for token in tokens or ()) for tokens in contexts]


def dense_inputs(
    sentences: Float[np.ndarray, "titles features"],
    descriptions: Float[np.ndarray, "titles others"],
    rows: Int[np.ndarray, " rows"],
) -> Float32[np.ndarray, "rows features"]:
    """Computes the normalized sum of the sentence vector and the description vector of each title.

    The sum is zero if both vectors are zero. If ``descriptions`` has no columns, only sentence vectors are
    used. ``rows`` contains the row numbers of the titles.
    """
    dense = np.empty((len(rows), sentences.shape[1]), dtype=np.float32)
    for block in row_blocks(len(dense)):
        dense[block] = sentences[rows[block]]
        if descriptions.shape[1]:
            dense[block] += descriptions[rows[block]]
        dense[block] = unit_rows(dense[block])
    return dense
