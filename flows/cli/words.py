"""The commands on word vectors of a fastText model or text form: ngrams, vector, neighbours."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from storage.errors import ExpectedError
from tasks.fasttext import FastText, FastTextError
from tasks.fasttext.compact import CompactStore
from tasks.fasttext.text_forms import VectorFileError, WordTable, nearest_words, open_words

WORDS_AT_A_TIME = 1000


class WordsError(ExpectedError, ValueError):
    """A question about words that cannot be answered; the message says why."""


def ngram_lines(path: Path, words: Sequence[str], as_json: bool) -> Iterator[str]:
    """Each n-gram on a line, a known word first: word, n-gram, row, vector; as JSON a word a line.

    Raises:
        WordsError: The file holds no n-grams.
    """
    model = _open(path)
    if not isinstance(model, FastText):
        raise WordsError(f"{path} holds words and vectors but no n-grams; give a fastText model (.bin, .ftz)")
    for start in range(0, len(words), WORDS_AT_A_TIME):
        some = words[start : start + WORDS_AT_A_TIME]
        for word, ngrams in zip(some, model.ngrams(some), strict=True):
            if as_json:
                found = [{"ngram": own.text, "row": own.row, "vector": own.vector.tolist()} for own in ngrams]
                yield json.dumps({"word": word, "ngrams": found}, ensure_ascii=False)
            else:
                yield from (f"{word}\t{own.text}\t{own.row}\t{_numbers(own.vector)}" for own in ngrams)


def vector_lines(path: Path, words: Sequence[str], as_json: bool) -> Iterator[str]:
    """Each word's vector on a line; zeros for a word of which nothing is known."""
    for word, vector in zip(words, _open(path).vectors(words), strict=True):
        if as_json:
            yield json.dumps({"word": word, "vector": vector.tolist()}, ensure_ascii=False)
        else:
            yield f"{word}\t{_numbers(vector)}"


def find_neighbours(path: Path, word: str, k: int) -> list[dict[str, Any]]:
    """The k words of the file that are nearest to a word, which need not be in the file.

    Raises:
        WordsError: Nothing of the word is known, or k is below 1.
    """
    model = _open(path)
    if k < 1:
        raise WordsError(f"k is {k}; it is 1 or more")
    if not model.vectors([word]).any():
        raise WordsError(f"nothing of {word!r} is known to {path}: neither the word nor one of its n-grams")
    return [{"word": name, "cosine": round(cosine, 6)} for name, cosine in nearest_words(model, word, k)]


def _open(path: Path) -> FastText | CompactStore | WordTable:
    try:
        return open_words(path)
    except (FastTextError, VectorFileError) as error:
        raise WordsError(str(error)) from error
    except OSError as error:
        raise WordsError(f"{path}: {error.strerror or error}") from error


def _numbers(vector: np.ndarray) -> str:
    return " ".join(f"{value:.9g}" for value in vector.tolist())
