"""The commands on word vectors: ``ngrams``, ``vector`` and ``neighbours`` of a model file, fastText's or a text form."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tasks.augment.fasttext import FastText, FastTextError
from tasks.augment.fasttext.compact import CompactStore
from tasks.augment.fasttext.nearest import nearest_words
from tasks.augment.fasttext.opening import open_words
from tasks.augment.fasttext.text_forms import VectorFileError, WordTable


class WordsError(ValueError):
    """A question about words that cannot be answered; the message says why."""


def print_ngrams(path: Path, words: Sequence[str], as_json: bool) -> Iterator[str]:
    """Each word's n-grams, a line each: word, n-gram, row, vector, separated by tabs. A known word itself comes first.

    Raises:
        WordsError: The file holds no n-grams.
    """
    model = _open(path)
    if not isinstance(model, FastText):
        raise WordsError(f"{path} holds words and vectors but no n-grams; give a fastText model (.bin, .ftz)")
    for start in range(0, len(words), 1000):
        part = words[start : start + 1000]
        for word, ngrams in zip(part, model.ngrams(part), strict=True):
            if as_json:
                yield json.dumps({"word": word, "ngrams": [{"ngram": own.text, "row": own.row, "vector": own.vector.tolist()} for own in ngrams]}, ensure_ascii=False)
            else:
                yield from (f"{word}\t{own.text}\t{own.row}\t{_numbers(own.vector)}" for own in ngrams)


def print_vectors(path: Path, words: Sequence[str], as_json: bool) -> Iterator[str]:
    """Each word's vector, a line each; a word of which nothing is known is a zero vector."""
    vectors = _open(path).vectors(words)
    for word, vector in zip(words, vectors, strict=True):
        yield json.dumps({"word": word, "vector": vector.tolist()}, ensure_ascii=False) if as_json else f"{word}\t{_numbers(vector)}"


def print_neighbours(path: Path, word: str, k: int, as_json: bool) -> Iterator[str]:
    """Words of the file that are nearest to a word, which need not be among them.

    Raises:
        WordsError: Nothing of the word is known, or k is none.
    """
    model = _open(path)
    if k < 1:
        raise WordsError(f"k is {k}; it is 1 or more")
    if not model.vectors([word]).any():
        raise WordsError(f"nothing of {word!r} is known to {path}: neither the word nor one of its n-grams")
    found = nearest_words(model, word, k)
    if as_json:
        yield json.dumps([{"word": name, "cosine": round(cosine, 6)} for name, cosine in found], ensure_ascii=False, indent=1)
    else:
        yield from (f"{cosine:.3f}  {name}" for name, cosine in found)


def _open(path: Path) -> FastText | CompactStore | WordTable:
    try:
        return open_words(path)
    except (FastTextError, VectorFileError) as error:
        raise WordsError(str(error)) from error
    except OSError as error:
        raise WordsError(f"{path}: {error.strerror or error}") from error


def _numbers(vector: np.ndarray) -> str:
    return " ".join(f"{value:.9g}" for value in vector.tolist())
