"""Computes the features of titles for the classifier of kinds from airings, words and sentence vectors.

Trained title vectors are not used as features. They were trained on categories, so they would predict the
kinds of training titles better than those of other titles, and thresholds would be too low. Sentence vectors
come from a pretrained encoder and do not have this problem.
"""

import itertools
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from storage.arrays import Ragged
from storage.shapes import Float32, Int

DIRECTIONS = 64  # number of principal directions of the sentence vectors that are features
BITS = 11  # words, channels and n-grams of channel names are hashed to 2^BITS features each
_MINUTES = [4, 8, 12, 18, 25, 35, 50, 65, 78, 88, 100, 115, 135, 170, 240, 1200]  # bounds of duration bins
_WORDS, _LETTERS = re.compile(r"\w+"), re.compile(r"[^\W\d_]{2,}")
_SENTENCE_SCALE, _NUMBER_SCALE, WORD_SCALE = 4.0, 0.3, 0.5  # chosen on real guides, as the next line
CHANNEL_SCALES = np.repeat(np.array([1, 0.4], dtype=np.float32), 1 << BITS)[:, None]  # names, n-grams
_PRIOR_TITLES = 3  # weight of the mean of all channels in the mean of one channel, in titles


class Inputs(NamedTuple):
    """Features of titles and of their channels.

    A weight matrix has a row for each dense feature, word id and channel id, in this order, and a last row of
    intercepts.
    """

    dense: Float32[np.ndarray, "titles features"]
    words: Ragged  # word ids below 2^BITS of each title
    channels: Ragged  # ids below 2^(BITS + 1) of each channel: its name, then n-grams of its name
    channel_of: Int[np.ndarray, " titles"]  # channel of each title, as a row of ``channels``

    def take(self, rows: np.ndarray) -> "Inputs":
        """Returns the features of the titles with the row numbers ``rows``."""
        return Inputs(self.dense[rows], self.words.take(rows), self.channels, self.channel_of[rows])

    def margins(self, weights: Float32[np.ndarray, "weights kinds"]) -> Float32[np.ndarray, "titles kinds"]:
        """Returns the margins x · w + b of all titles and kinds."""
        dense = self.dense.shape[1]
        of_words, of_channels = weights[dense : dense + (1 << BITS)], weights[dense + (1 << BITS) : -1]
        margins = self.dense @ weights[:dense] + WORD_SCALE * _sum_weights(self.words, of_words) + weights[-1]
        return margins + _sum_weights(self.channels, of_channels * CHANNEL_SCALES)[self.channel_of]


def _sum_weights(ids: Ragged, weights: np.ndarray) -> np.ndarray:
    """Sums, for each row of ``ids``, the rows of ``weights`` with these ids: (rows, kinds)."""
    columns = [np.bincount(ids.row_ids, column[ids.values], len(ids)) for column in weights.T]
    return np.stack(columns, axis=1).astype(np.float32)


@dataclass(frozen=True)
class Scaling:
    """Standardization of numeric features, and projection of sentence vectors, fitted on training titles."""

    mean: Float32[np.ndarray, " numbers"]  # mean of each numeric feature
    deviation: Float32[np.ndarray, " numbers"]  # standard deviation of each numeric feature
    directions: Float32[np.ndarray, "dim directions"]  # principal directions of the sentence vectors

    @staticmethod
    def fit(structure: pa.Table, sentences: np.ndarray) -> "Scaling":
        """Computes means, deviations and principal directions from the titles of a corpus."""
        numbers, vectors = _numeric_features(structure), np.asarray(sentences, dtype=np.float32)
        directions = np.linalg.eigh(vectors.T @ vectors)[1][:, ::-1][:, :DIRECTIONS]
        deviation = numbers.std(axis=0) + 1e-6
        return Scaling(numbers.mean(axis=0), deviation, np.ascontiguousarray(directions, dtype=np.float32))

    def inputs(self, structure: pa.Table, titles: Sequence[str], sentences: np.ndarray) -> Inputs:
        """Computes the features of titles.

        Args:
            structure: Result of ``TitleAirings.structure`` (storage/catalogue/structure.py) for all titles of
                the guide, because the means of a channel are features too.
            titles: Display titles.
            sentences: Sentence vectors, (titles, dim); zero for titles without one.
        """
        numbers = np.clip((_numeric_features(structure) - self.mean) / self.deviation, -5, 5)
        column = structure["channel"].combine_chunks().dictionary_encode()
        channel_of, names = column.indices.to_numpy().astype(np.int64), column.dictionary.to_pylist()
        vectors = np.asarray(sentences, dtype=np.float32) @ self.directions
        parts = [numbers, _channel_means(channel_of, numbers)]
        dense = np.hstack([_SENTENCE_SCALE * vectors, *(_NUMBER_SCALE * part for part in parts)])
        words = _hash_rows(map(_title_words, titles))
        channels = Ragged.from_rows(
            [[_hash(name), *(_hash(text) + (1 << BITS) for text in _ngrams(name))] for name in names]
        )
        return Inputs(dense.astype(np.float32), words, channels, channel_of)


def _numeric_features(structure: pa.Table) -> Float32[np.ndarray, "titles numbers"]:
    """Computes the numeric features of titles: shares, logarithms of counts, durations, and combinations."""
    names = set(structure.column_names) - {"title_id", "source", "channel"}
    columns = {name: structure[name].to_numpy() for name in names}
    airings = np.maximum(columns["airings"], 1)
    shares = {name: columns[name] / airings for name in ("numbered", "sub_titled", "dated", "evening")}
    counts = ("airings", "days", "hours", "sub_titles", "episodes", "dates", "channels")
    numbers = [*shares.values(), *(np.log1p(columns[name]) for name in counts)]
    numbers += [columns["sub_titles"] > 1, columns["airings"] == 1]
    numbers += [columns[name] / airings for name in ("sub_titles", "days")]
    minutes = np.clip(columns["minutes"], 1, 600)
    durations = np.eye(len(_MINUTES) + 1)[np.searchsorted(_MINUTES, minutes)]
    is_plain = (shares["sub_titled"] == 0) & (shares["numbered"] == 0)
    crossed = [durations, durations * is_plain[:, None], durations * shares["dated"][:, None]]
    return np.hstack([np.stack([*numbers, np.log(minutes)], axis=1), *crossed]).astype(np.float32)


def _channel_means(channels: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Returns for each title the mean features of the other titles on its channel, minus the global mean.

    Args:
        channels: Channel number of each title.
        numbers: Numeric features, (titles, numbers). The mean is smoothed by _PRIOR_TITLES average titles.
    """
    count, mean = np.bincount(channels), numbers.mean(axis=0) if len(numbers) else numbers.sum(axis=0)
    sums = np.stack([np.bincount(channels, column) for column in numbers.T], axis=1)[channels]
    return (sums - numbers + _PRIOR_TITLES * mean) / (count[channels] - 1 + _PRIOR_TITLES)[:, None] - mean


def _title_words(title: str) -> set[str]:
    """Returns the words and the pairs of successive words of a title, in lower case."""
    words = _WORDS.findall(title.casefold())
    return {*words, *(f"{first} {second}" for first, second in itertools.pairwise(words))}


def _ngrams(name: str) -> set[str]:
    """Returns the words of a channel name and their character n-grams of length 3 to 5."""
    words = {f"<{word}>" for word in _LETTERS.findall(name.casefold())}
    return words | {
        word[start : start + size]
        for word in words
        for size in (3, 4, 5)
        for start in range(len(word) - size + 1)
    }


def _hash(text: str) -> int:
    """Hashes a text to a feature id below 2^BITS."""
    return zlib.crc32(text.encode()) % (1 << BITS)


def _hash_rows(rows: Iterable[Iterable[str]]) -> Ragged:
    """Returns the distinct hashes of the texts in each row, ascending."""
    return Ragged.from_rows([sorted({_hash(text) for text in row}) for row in rows])
