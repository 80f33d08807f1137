"""Features of titles for the classifier of kinds, computed from airings, words and sentence vectors.

The trained vectors are not used: they were trained on categories, so that they would predict the kinds of
their training titles too well to choose thresholds. Sentence vectors know nothing of the guide.
"""

import itertools
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from scipy import sparse

from storage.shapes import Float32

DIRECTIONS = 64  # principal directions of the sentence vectors that are used
BITS = 11  # words, channels and n-grams of channel names are hashed to 2^BITS features each
_MINUTES = [4, 8, 12, 18, 25, 35, 50, 65, 78, 88, 100, 115, 135, 170, 240, 1200]  # limits of durations
_WORDS, _LETTERS = re.compile(r"\w+"), re.compile(r"[^\W\d_]{2,}")
_SENTENCE_SCALE, _NUMBER_SCALE, _WORD_SCALE, _NAME_SCALE = 4.0, 0.3, 0.5, 0.4  # chosen on real guides
_PRIOR_TITLES = 3  # weight of the mean of all channels in the mean of a channel


class Inputs(NamedTuple):
    """Features of titles: those of the title itself, and those of its channel."""

    dense: Float32[np.ndarray, "titles features"]
    words: Any  # CSR, float32 (titles, 2^BITS)
    channels: Any  # CSR, float32 (channels, 2^(BITS + 1))
    channel_of: Any  # CSR, float32 (titles, channels), one 1 per row

    def take(self, rows: np.ndarray) -> "Inputs":
        """Selects titles."""
        return Inputs(self.dense[rows], self.words[rows], self.channels, self.channel_of[rows])


@dataclass(frozen=True)
class Scaling:
    """Mean and deviation of the numbers of training titles, and directions of sentence vectors."""

    mean: Float32[np.ndarray, " numbers"]
    deviation: Float32[np.ndarray, " numbers"]
    directions: Float32[np.ndarray, "dim directions"]

    @staticmethod
    def fit(structure: pa.Table, sentences: np.ndarray) -> "Scaling":
        """Computes the scaling of training titles."""
        numbers, vectors = _numbers(structure), np.asarray(sentences, dtype=np.float32)
        directions = np.linalg.eigh(vectors.T @ vectors)[1][:, ::-1][:, :DIRECTIONS]
        deviation = numbers.std(axis=0) + 1e-6
        return Scaling(numbers.mean(axis=0), deviation, np.ascontiguousarray(directions, dtype=np.float32))

    def inputs(self, structure: pa.Table, titles: Sequence[str], sentences: np.ndarray) -> Inputs:
        """Computes the features of titles.

        Args:
            structure: Result of ``title_structure`` (storage/catalogue/structure.py) for all titles of the
                guide, because the means of a channel are features too.
            titles: Display titles.
            sentences: Sentence vectors, (titles, dim); zero where unknown.
        """
        numbers = np.clip((_numbers(structure) - self.mean) / self.deviation, -5, 5)
        encoded = structure["channel"].combine_chunks().dictionary_encode()
        channels, names = encoded.indices.to_numpy(), encoded.dictionary.to_pylist()
        vectors = np.asarray(sentences, dtype=np.float32) @ self.directions
        parts = [numbers, _of_other_titles(channels, numbers)]
        dense = np.hstack([_SENTENCE_SCALE * vectors, *(_NUMBER_SCALE * part for part in parts)])
        ids = _hashed([name] for name in names)
        ngrams = _NAME_SCALE * _hashed(map(_ngrams, names))
        words = _WORD_SCALE * _hashed(map(_title_words, titles))
        ones = np.ones(len(channels), dtype=np.float32)
        channel_of = sparse.csr_matrix((ones, (np.arange(len(channels)), channels)), (len(ones), len(names)))
        return Inputs(dense.astype(np.float32), words, sparse.hstack([ids, ngrams], "csr"), channel_of)


def _numbers(structure: pa.Table) -> Float32[np.ndarray, "titles numbers"]:
    """Returns shares, logarithms of counts, and durations, also combined with sub-titles and dates."""
    skipped = ("title_id", "source", "channel")
    columns = {name: structure[name].to_numpy() for name in structure.column_names if name not in skipped}
    airings = np.maximum(columns["airings"], 1)
    shares = {name: columns[name] / airings for name in ("numbered", "sub_titled", "dated", "evening")}
    counts = ("airings", "days", "hours", "sub_titles", "episodes", "dates", "channels")
    numbers = [*shares.values(), *(np.log1p(columns[name]) for name in counts)]
    numbers += [columns["sub_titles"] > 1, columns["airings"] == 1]
    numbers += [columns[name] / airings for name in ("sub_titles", "days")]
    minutes = np.clip(columns["minutes"], 1, 600)
    durations = np.eye(len(_MINUTES) + 1)[np.searchsorted(_MINUTES, minutes)]
    plain = (shares["sub_titled"] == 0) & (shares["numbered"] == 0)
    crossed = [durations, durations * plain[:, None], durations * shares["dated"][:, None]]
    return np.hstack([np.stack([*numbers, np.log(minutes)], axis=1), *crossed]).astype(np.float32)


def _of_other_titles(channels: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Returns how the mean of the other titles of the channel differs from the mean of all titles."""
    count, mean = np.bincount(channels), numbers.mean(axis=0) if len(numbers) else numbers.sum(axis=0)
    sums = np.stack([np.bincount(channels, column) for column in numbers.T], axis=1)[channels]
    return (sums - numbers + _PRIOR_TITLES * mean) / (count[channels] - 1 + _PRIOR_TITLES)[:, None] - mean


def _title_words(title: str) -> set[str]:
    words = _WORDS.findall(title.casefold())
    return {*words, *(f"{first} {second}" for first, second in itertools.pairwise(words))}


def _ngrams(name: str) -> set[str]:
    words = {f"<{word}>" for word in _LETTERS.findall(name.casefold())}
    return words | {
        word[at : at + size] for word in words for size in (3, 4, 5) for at in range(len(word) - size + 1)
    }


def _hashed(texts: Iterable[Iterable[str]]) -> Any:
    """Returns a CSR matrix with a 1 for the hash of each text of a row."""
    offsets, hashes = [0], []
    for row in texts:
        hashes += {zlib.crc32(text.encode()) % (1 << BITS) for text in row}
        offsets.append(len(hashes))
    arrays = np.ones(len(hashes), dtype=np.float32), np.array(hashes, np.int32), np.array(offsets, np.int32)
    return sparse.csr_matrix(arrays, (len(offsets) - 1, 1 << BITS))
