"""Defines the commands about words of a fastText model or a file of word vectors, such as ``neighbours``."""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

from flows.cli.options import AsJson, ResultCount
from flows.cli.render import show
from storage.errors import ExpectedError

if TYPE_CHECKING:
    import numpy as np

    from tasks.fasttext.text_forms import WordVectors

BATCH_SIZE = 1000  # words whose n-grams are computed at a time
VECTORS_HELP = "fastText .bin or .ftz, .vec, word2vec or GloVe file"
NgramModel = Annotated[Path, Argument(metavar="MODEL", help="fastText .bin or .ftz")]
VectorModel = Annotated[Path, Argument(metavar="MODEL", help=VECTORS_HELP)]
WordList = Annotated[
    list[str], Argument(metavar="WORD ...", help="a word; - reads a word per line from standard input")
]


class WordsError(ExpectedError, ValueError):
    """Error: a command cannot read a model, or the model cannot answer. The message contains the reason."""


def ngrams(model: NgramModel, words: WordList, as_json: AsJson = False) -> None:
    """Print the character n-grams of words with rows and vectors."""
    for line in ngram_lines(model, _read_words(words), as_json):
        print(line)


def vector(model: VectorModel, words: WordList, as_json: AsJson = False) -> None:
    """Print the vectors of words, including unknown words."""
    for line in vector_lines(model, _read_words(words), as_json):
        print(line)


def neighbours(model: VectorModel, word: str, k: ResultCount = 10, as_json: AsJson = False) -> None:
    """Print the words nearest to a word."""
    documents = find_neighbours(model, word, k)
    show(documents, as_json, (f"{neighbour['cosine']:.3f}  {neighbour['word']}" for neighbour in documents))


def _read_words(words: list[str]) -> list[str]:
    return [line.rstrip("\n") for line in sys.stdin] if words == ["-"] else words


def ngram_lines(model_file: Path, words: Sequence[str], as_json: bool) -> Iterator[str]:
    """Yields a line per n-gram of each word: the word, the n-gram, its row number and its vector.

    For a word in the vocabulary, the first line has the word itself as its n-gram. If ``as_json``, yields one
    line of JSON per word.

    Raises:
        WordsError: The file contains no n-grams.
    """
    from tasks.fasttext import FastText

    model = _open_vectors(model_file)
    if not isinstance(model, FastText):
        raise WordsError(
            f"{model_file} has vectors of words but no n-grams; give a fastText model (.bin, .ftz)"
        )
    for start in range(0, len(words), BATCH_SIZE):
        batch = words[start : start + BATCH_SIZE]
        for word, word_ngrams in zip(batch, model.ngrams(batch), strict=True):
            if as_json:
                documents = [
                    {"ngram": ngram.text, "row": ngram.row, "vector": ngram.vector.tolist()}
                    for ngram in word_ngrams
                ]
                yield json.dumps({"word": word, "ngrams": documents}, ensure_ascii=False)
            else:
                yield from (
                    f"{word}\t{ngram.text}\t{ngram.row}\t{_format_vector(ngram.vector)}"
                    for ngram in word_ngrams
                )


def vector_lines(model_file: Path, words: Sequence[str], as_json: bool) -> Iterator[str]:
    """Yields a line with each word and its vector, which is zero if the word and its n-grams are unknown."""
    for word, vector in zip(words, _open_vectors(model_file).vectors(words), strict=True):
        if as_json:
            yield json.dumps({"word": word, "vector": vector.tolist()}, ensure_ascii=False)
        else:
            yield f"{word}\t{_format_vector(vector)}"


def find_neighbours(model_file: Path, word: str, k: int) -> list[dict[str, Any]]:
    """Returns the ``k`` words of a file that are nearest to ``word``, which need not be in the file.

    Raises:
        WordsError: The vector of ``word`` is zero, or k is below 1.
    """
    from tasks.fasttext.text_forms import nearest_words

    model = _open_vectors(model_file)
    if k < 1:
        raise WordsError(f"k must be at least 1, got {k}")
    if not model.vectors([word]).any():
        raise WordsError(f"{model_file} contains neither the word {word!r} nor one of its n-grams")
    return [{"word": name, "cosine": round(cosine, 6)} for name, cosine in nearest_words(model, word, k)]


def _open_vectors(model_file: Path) -> "WordVectors":
    from tasks.fasttext import FastTextError
    from tasks.fasttext.text_forms import VectorFileError, open_words

    try:
        return open_words(model_file)
    except (FastTextError, VectorFileError) as error:
        raise WordsError(str(error)) from error
    except OSError as error:
        raise WordsError(f"{model_file}: {error.strerror or error}") from error


def _format_vector(vector: "np.ndarray") -> str:
    return " ".join(f"{value:.9g}" for value in vector.tolist())
