"""TF-IDF features of titles: words, word pairs and character n-grams; what both text baselines stand on.

scikit-learn is imported where it is used: the settings of this family are read by every `--help`, and it takes a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sparse

from tasks.form import FORM

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfVectorizer


SEPARATOR = "\x1f"  # between a title and its context tokens, which are features as they are: "Tatort\x1fhour:20 channel:das erste"


@dataclass(frozen=True, kw_only=True)
class TfidfFeatures:
    """Which n-grams count. The n-grams' range and count are those that scored best on four English guides."""

    __pydantic_config__ = FORM

    longest_word_ngram: int = field(default=2, metadata={"description": "Longest run of words that is a feature.", "ge": 1, "le": 5})
    shortest_char_ngram: int = field(default=3, metadata={"description": "Shortest character n-gram, within words.", "ge": 1, "le": 10})
    longest_char_ngram: int = field(default=5, metadata={"description": "Longest character n-gram, within words.", "ge": 1, "le": 10})
    min_titles: int = field(default=1, metadata={"description": "Features in fewer training titles are dropped (2 instead of 1 costs a point of accuracy).", "ge": 1})

    def __post_init__(self) -> None:
        if self.longest_char_ngram < self.shortest_char_ngram:
            raise ValueError(f"character n-grams of {self.shortest_char_ngram} to {self.longest_char_ngram} are none; raise longest_char_ngram")

    def fit_transform(self, texts: Sequence[str]) -> tuple[FittedTfidf, sparse.csr_matrix]:
        """Learns vocabulary and document frequencies, and gives the features of the same texts (reading them once, not twice).

        Args:
            texts: Training titles; one at least must hold a letter or a digit.

        Raises:
            ValueError: No text holds a feature.
        """
        from sklearn.feature_extraction.text import TfidfVectorizer

        shared: dict[str, Any] = {"min_df": self.min_titles, "sublinear_tf": True, "dtype": np.float32}
        parts = (
            TfidfVectorizer(analyzer="word", token_pattern=r"\b\w+\b", ngram_range=(1, self.longest_word_ngram), **shared),
            TfidfVectorizer(analyzer="char_wb", ngram_range=(self.shortest_char_ngram, self.longest_char_ngram), **shared),
        )
        titles, contexts = _split(texts)
        if any(contexts):
            parts = (*parts, TfidfVectorizer(analyzer="word", token_pattern=r"\S+", lowercase=False, **shared))
        return FittedTfidf(parts), _joined([part.fit_transform(read) for part, read in zip(parts, (titles, titles, contexts), strict=False)])


@dataclass(frozen=True)
class FittedTfidf:
    """The fitted vectorizers, words first."""

    parts: tuple[TfidfVectorizer, ...]

    @property
    def width(self) -> int:
        """How many features there are."""
        return sum(len(part.vocabulary_) for part in self.parts)

    def transform(self, texts: Sequence[str]) -> sparse.csr_matrix:
        """Features, float32, shape (titles, features).

        Words and n-grams have unit norm each (or are zero where none is known), so that neither outweighs the other.
        """
        if not len(texts):
            return sparse.csr_matrix((0, self.width), dtype=np.float32)
        titles, contexts = _split(texts)
        return _joined([part.transform(read) for part, read in zip(self.parts, (titles, titles, contexts), strict=False)])


def _split(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Titles and, where a text holds them, the context tokens after the separator."""
    pairs = [text.partition(SEPARATOR) for text in texts]
    return [title for title, _, _ in pairs], [context for _, _, context in pairs]


def _joined(parts: Sequence[Any]) -> sparse.csr_matrix:
    return sparse.csr_matrix(sparse.hstack(parts, format="csr", dtype=np.float32))
