"""Defines the inputs of the baselines: texts, sentence features and context tokens of titles."""

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
    """Inputs of a baseline: texts, sentence features and context tokens (channel, hour …) of titles."""

    texts: Sequence[str]
    sentence_features: Float32[np.ndarray, "titles features"]  # from unit_sentence_features
    contexts: Sequence[str] = ()  # context tokens of each title, separated by spaces; () if not used
    # Features and neighbours of the titles, which several baselines share (tfidf.py, sentence.py).
    cache: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        texts, vectors, contexts = map(len, (self.texts, self.sentence_features, self.contexts or self.texts))
        if not texts == vectors == contexts:
            raise ValueError(
                f"{texts} texts, {vectors} sentence vectors and {contexts} contexts; pass one per title"
            )

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: np.ndarray) -> Self:
        """Returns the inputs of the titles with the given row numbers."""
        texts = [self.texts[int(row)] for row in rows]
        contexts = [self.contexts[int(row)] for row in rows] if self.contexts else ()
        return type(self)(texts, self.sentence_features[rows], contexts)

    def without_contexts(self) -> Self:
        """Returns the inputs without context tokens, with the same cache."""
        return replace(self, contexts=())

    def require_sentence_features(self) -> Float32[np.ndarray, "titles features"]:
        """Returns the sentence features.

        Raises:
            NoSentenceVectors: The corpus has no sentence vectors.
        """
        if not self.sentence_features.shape[1]:
            raise NoSentenceVectors(
                "the corpus has no sentence vectors; choose an encoder in preprocess.sentences"
            )
        return self.sentence_features


def join_contexts(contexts: Iterable[Sequence[str] | None]) -> list[str]:
    """Joins the context tokens of each title with spaces. Spaces inside a token become underscores."""
    return [" ".join("_".join(token.split()) for token in tokens or ()) for tokens in contexts]


def unit_sentence_features(
    sentences: Float[np.ndarray, "titles features"],
    descriptions: Float[np.ndarray, "titles others"],
    rows: Int[np.ndarray, " rows"],
) -> Float32[np.ndarray, "rows features"]:
    """Computes the sentence feature vector of titles: the sum of sentence and description vector, unit norm.

    The sum is zero if both vectors are zero.

    Args:
        sentences: Sentence vectors of all titles.
        descriptions: Description vectors of all titles; an array without columns if there are none.
        rows: Row numbers of the titles.
    """
    features = np.empty((len(rows), sentences.shape[1]), dtype=np.float32)
    for block in row_blocks(len(features)):
        features[block] = sentences[rows[block]]
        if descriptions.shape[1]:
            features[block] += descriptions[rows[block]]
        features[block] = unit_rows(features[block])
    return features
