"""Words nearest to a word, by cosine, in blocks: a large model is never held as one matrix of word vectors."""

from __future__ import annotations

import numpy as np

from tasks.augment.fasttext.compact import CompactStore
from tasks.augment.fasttext.model import FastText
from tasks.augment.fasttext.text_forms import WordTable
from tasks.augment.ngrams import encode

_BLOCK = 20_000  # words: 24 MB of 300 dimensions


def nearest_words(model: FastText | CompactStore | WordTable, word: str | bytes, k: int) -> list[tuple[str, float]]:
    """The model's words nearest to a word, the nearest first, without the word itself.

    Args:
        model: Whose words are asked.
        word: Need not be among them.
        k: How many.

    Returns:
        Word and cosine; bytes that are no UTF-8 are shown as escapes.
    """
    words = model.dictionary.words() if isinstance(model, FastText) else model.words
    query = model.vectors([word])[0]
    query = query / max(float(np.linalg.norm(query)), 1e-12)
    best, places = np.full(0, 0.0, dtype=np.float32), np.zeros(0, dtype=np.int64)
    for start in range(0, len(words), _BLOCK):
        vectors = model.vectors(words[start : start + _BLOCK])
        cosines = (vectors @ query) / np.maximum(np.linalg.norm(vectors, axis=1), 1e-12)
        best, places = np.append(best, cosines), np.append(places, np.arange(start, start + len(cosines)))
        top = np.argsort(-best, kind="stable")[: k + 1]
        best, places = best[top], places[top]
    found = [(words[place], float(cosine)) for place, cosine in zip(places, best, strict=True) if words[place] != encode(word)]
    return [(name.decode("utf-8", "backslashreplace"), cosine) for name, cosine in found[:k]]
