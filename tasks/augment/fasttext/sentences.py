"""Vectors of sentences, as fastText makes them: two ways, by the kind of model.

Word vectors models: the mean of the words' unit vectors, words without a vector not counted. Supervised models: the mean
of the input rows of words, n-grams, word n-grams and the end of the sentence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from storage.arrays import Ragged
from tasks.augment.fasttext.dictionary import EOS
from tasks.augment.fasttext.matrices import sum_rows
from tasks.augment.fasttext.model import FastText
from tasks.augment.ngrams import encode, hash_strings

_SPACE = re.compile(rb"[ \t\v\f\r]+")
_SPACE_OR_NUL = re.compile(rb"[ \t\v\f\r\0]+")
_LABEL = b"__label__"  # the prefix is not stored; fastText too takes its default when it loads a model
_MIX = np.uint64(116049371)


def sentence_vectors(model: FastText, sentences: Sequence[str | bytes]) -> np.ndarray:
    """Vectors of sentences.

    Args:
        model: Of any kind.
        sentences: A line each.

    Returns:
        float32 (sentences, dim).

    Raises:
        ValueError: A sentence with a line feed.
    """
    encoded = [encode(sentence) for sentence in sentences]
    for number, sentence in enumerate(encoded):
        if b"\n" in sentence:
            raise ValueError(f"sentence {number} holds a line feed at byte {sentence.index(10)}; give a line each")
    one = _supervised if model.header.supervised else _unsupervised
    return np.stack([one(model, sentence) for sentence in encoded]) if encoded else np.zeros((0, model.dim), dtype=np.float32)


def _unsupervised(model: FastText, sentence: bytes) -> np.ndarray:
    total, count = np.zeros(model.dim, dtype=np.float32), 0
    for vector in model.vectors([word for word in _SPACE.split(sentence) if word]):
        norm = np.sqrt(np.add.accumulate(vector * vector)[-1])  # accumulate adds one after the other, as the loop does
        if norm > 0:
            total += vector * np.float32(1.0 / float(norm))
            count += 1
    return total * np.float32(1.0 / count) if count else total


def _supervised(model: FastText, sentence: bytes) -> np.ndarray:
    tokens = [word for word in _SPACE_OR_NUL.split(sentence) if word]
    tokens = [*(tokens[: tokens.index(EOS)] if EOS in tokens else tokens), EOS]
    ids = model.dictionary.ids(tokens)
    words = model.dictionary.word_count
    kept = [place for place, (token, own) in enumerate(zip(tokens, ids, strict=True)) if (own < words if own >= 0 else not token.startswith(_LABEL))]
    rows = model.rows([tokens[place] for place in kept])
    grams = _word_ngrams(model, hash_strings([tokens[place] for place in kept]))
    values = np.concatenate([rows.values, grams])
    if not len(values):
        return np.zeros(model.dim, dtype=np.float32)
    return sum_rows(model.matrix, Ragged(np.array([0, len(values)]), values), model.dim)[0] * np.float32(1.0 / len(values))


def _word_ngrams(model: FastText, hashes: np.ndarray) -> np.ndarray:
    """Rows of the word n-grams, in fastText's order; hashes are sign-extended to 64 bits."""
    extended = hashes.view(np.int32).astype(np.int64).view(np.uint64)
    found = []
    with np.errstate(over="ignore"):
        for first in range(len(extended)):
            mixed = extended[first]
            for other in extended[first + 1 : first + model.header.word_ngrams]:
                mixed = mixed * _MIX + other
                found.append(int(mixed % np.uint64(model.header.bucket)))
    buckets = np.array(found, dtype=np.int64)
    return model.dictionary.rows(Ragged(np.array([0, len(buckets)]), buckets)).values
