"""Any file of word vectors: fastText's .bin and .ftz, a compact store, .vec, word2vec text and binary, GloVe."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from tasks.augment.fasttext.compact import STORE, CompactStore
from tasks.augment.fasttext.model import FastText
from tasks.augment.fasttext.text_forms import WordTable, read_vectors


class Words(Protocol):
    """What every one of them can be asked."""

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""
        ...

    def known(self, words: Sequence[str | bytes]) -> np.ndarray:
        """Whether each word has a vector: bool (words,)."""
        ...

    def vectors(self, words: Sequence[str | bytes]) -> np.ndarray:
        """Vectors of words: float32 (words, dim), zero where nothing is known."""
        ...


def open_words(path: Path | str, keep: Callable[[bytes], bool] | None = None) -> FastText | CompactStore | WordTable:
    """Opens a file of word vectors (or the folder of a compact store) by what it holds, not by its name.

    Args:
        path: File or folder.
        keep: Which words of a text form are wanted, which is read whole otherwise; None wants all.

    Raises:
        FastTextError: It looks like a fastText model but is none, or is damaged.
        VectorFileError: It is none of the text forms either.
        OSError: It cannot be read.
    """
    place = Path(path)
    if (place / STORE).exists():
        return CompactStore.open(place)
    with open(place, "rb") as handle:
        head = handle.read(64)
    binary = not re.match(rb"\d+ \d+ ?\r?\n", head) and (b"\0" in head or not head)
    return FastText.open(place) if binary else read_vectors(place, keep)
