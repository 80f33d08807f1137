"""What baselines read of titles: text, and the dense vector that training reads too."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from storage.arrays import row_blocks, unit_rows
from storage.shapes import Float, Float32, Int

_REMEDY = "the corpus holds no sentence vectors; choose an encoder in preprocess.sentences"


class NoSentenceVectors(ValueError):
    """A baseline that reads dense vectors was given titles without; the message says why."""


@dataclass(frozen=True)
class TitleInputs:
    """Titles, one entry each; ``dense`` has no columns where the corpus holds no sentence vectors."""

    texts: Sequence[str]
    dense: Float32[np.ndarray, "titles features"]  # unit norm, or zero where nothing is known of a title
    contexts: Sequence[str] = ()  # how each airs, tokens between blanks; without rows: the titles alone
    derived: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)  # see tfidf.py

    def __post_init__(self) -> None:
        rows = len(self.contexts) or len(self.texts)
        if not len(self.texts) == len(self.dense) == rows:
            problem = f"{len(self.texts)} texts for {len(self.dense)} dense vectors and {rows} contexts"
            raise ValueError(f"{problem}; give one of each per title")

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: np.ndarray) -> Self:
        """Some titles, by row."""
        texts = [self.texts[int(row)] for row in rows]
        contexts = [self.contexts[int(row)] for row in rows] if self.contexts else ()
        return type(self)(texts, self.dense[rows], contexts)

    def alone(self) -> Self:
        """The titles without how they air; what is derived of their texts is shared."""
        return replace(self, contexts=())

    def known_dense(self) -> Float32[np.ndarray, "titles features"]:
        """The dense vectors; NoSentenceVectors where there are none."""
        if not self.dense.shape[1]:
            raise NoSentenceVectors(_REMEDY)
        return self.dense


def join_contexts(contexts: Iterable[Sequence[str] | None]) -> list[str]:
    """Tokens of how each title airs as one text with blanks between tokens alone."""
    return [" ".join("_".join(token.split()) for token in tokens or ()) for tokens in contexts]


def dense_inputs(
    sentences: Float[np.ndarray, "titles features"],
    descriptions: Float[np.ndarray, "titles others"],
    rows: Int[np.ndarray, " rows"],
) -> Float32[np.ndarray, "rows features"]:
    """Unit-norm sum of the sentence vector and the description vector of some titles, or zero.

    ``descriptions`` may have no columns: then it is the title's sentence vector.
    """
    dense = np.empty((len(rows), sentences.shape[1]), dtype=np.float32)
    for own in row_blocks(len(dense)):
        dense[own] = sentences[rows[own]]
        if descriptions.shape[1]:
            dense[own] += descriptions[rows[own]]
        dense[own] = unit_rows(dense[own])
    return dense
