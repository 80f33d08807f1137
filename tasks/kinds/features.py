"""Computes the features of titles for the classifier of kinds from airings, words and sentence vectors.

Trained title vectors are not used as features. They were trained on categories, so they would predict the
kinds of training titles better than the kinds of other titles, and thresholds would be too low. Sentence
vectors come from a pretrained encoder, which has not seen the categories.
"""

import itertools
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from storage.arrays import Ragged
from storage.shapes import Float32, Int

DIRECTIONS = 64  # number of principal directions of sentence vectors that are used as features
BITS = 11  # words, channel names and n-grams of channel names are hashed to 2^BITS features each
_DURATION_BOUNDS = [4, 8, 12, 18, 25, 35, 50, 65, 78, 88, 100, 115, 135, 170, 240, 1200]  # minutes
_WORD, _LETTERS = re.compile(r"\w+"), re.compile(r"[^\W\d_]{2,}")
# Factors by which the groups of features are multiplied, chosen on real guides. CHANNEL_SCALES has the
# factors of channel names and of n-grams of channel names.
_SENTENCE_SCALE, _NUMBER_SCALE, WORD_SCALE = 4.0, 0.3, 0.5
CHANNEL_SCALES = np.repeat(np.array([1, 0.4], dtype=np.float32), 1 << BITS)[:, None]
_PRIOR_TITLES = 3  # number of average titles that smooth the mean features of a channel


class Inputs(NamedTuple):
    """Features of titles and of their channels.

    A weight matrix has one row per feature in ``dense``, word id and channel feature id, in this order, and a
    last row with the intercepts.
    """

    dense: Float32[np.ndarray, "titles features"]  # projected sentence vectors, numbers, means over channels
    words: Ragged  # word ids of each title, below 2^BITS
    channels: Ragged  # feature ids of each channel, below 2^(BITS + 1): hash of its name, n-grams of its name
    channel_of: Int[np.ndarray, " titles"]  # channel of each title, as a row number of ``channels``

    def take(self, rows: np.ndarray) -> "Inputs":
        """Returns the features of the titles with the row numbers ``rows``."""
        return Inputs(self.dense[rows], self.words.take(rows), self.channels, self.channel_of[rows])

    def margins(self, weights: Float32[np.ndarray, "weights kinds"]) -> Float32[np.ndarray, "titles kinds"]:
        """Computes the margins x · w + b of all titles and kinds."""
        dense_count = self.dense.shape[1]
        word_weights, channel_weights = np.split(weights[dense_count:-1], [1 << BITS])
        word_margins = WORD_SCALE * _sum_weights(self.words, word_weights)
        channel_margins = _sum_weights(self.channels, channel_weights * CHANNEL_SCALES)[self.channel_of]
        return self.dense @ weights[:dense_count] + word_margins + weights[-1] + channel_margins


def _sum_weights(ids: Ragged, weights: np.ndarray) -> np.ndarray:
    """Computes, for each row of ``ids``, the sum of the rows of ``weights`` with these ids: (rows, kinds)."""
    columns = [np.bincount(ids.row_ids, column[ids.values], len(ids)) for column in weights.T]
    return np.stack(columns, axis=1).astype(np.float32)


@dataclass(frozen=True)
class Scaling:
    """Standardization of numeric features and projection of sentence vectors, fitted to training titles."""

    mean: Float32[np.ndarray, " numbers"]  # means of the numeric features
    deviation: Float32[np.ndarray, " numbers"]  # standard deviations of the numeric features
    directions: Float32[np.ndarray, "dim directions"]  # principal directions of the sentence vectors

    @staticmethod
    def fit(structure: pa.Table, sentences: np.ndarray) -> "Scaling":
        """Computes the scaling from the titles of a corpus; the arguments are described in ``inputs``."""
        numbers, vectors = _numeric_features(structure), np.asarray(sentences, dtype=np.float32)
        directions = np.linalg.eigh(vectors.T @ vectors)[1][:, ::-1][:, :DIRECTIONS]
        deviation = numbers.std(axis=0) + 1e-6
        return Scaling(numbers.mean(axis=0), deviation, np.ascontiguousarray(directions, dtype=np.float32))

    def inputs(self, structure: pa.Table, titles: Sequence[str], sentences: np.ndarray) -> Inputs:
        """Computes the features of titles.

        Args:
            structure: Result of ``AiringStatistics.by_title`` for all titles of the guide, because the means
                over the titles of a channel are features too.
            titles: Display titles.
            sentences: Sentence vectors, (titles, dim); zero for a title without a sentence vector.
        """
        numbers = np.clip((_numeric_features(structure) - self.mean) / self.deviation, -5, 5)
        channel_column = structure["channel"].combine_chunks().dictionary_encode()
        channel_of = channel_column.indices.to_numpy().astype(np.int64)
        channel_names = channel_column.dictionary.to_pylist()
        vectors = np.asarray(sentences, dtype=np.float32) @ self.directions
        channel_means = _channel_means(channel_of, numbers)
        dense = np.hstack([_SENTENCE_SCALE * vectors, _NUMBER_SCALE * numbers, _NUMBER_SCALE * channel_means])
        words = Ragged.from_rows([sorted(set(map(_hash, _title_words(title)))) for title in titles])
        channels = Ragged.from_rows(
            [
                [_hash(name), *(_hash(ngram) + (1 << BITS) for ngram in _ngrams(name))]
                for name in channel_names
            ]
        )
        return Inputs(dense.astype(np.float32), words, channels, channel_of)


def _numeric_features(structure: pa.Table) -> Float32[np.ndarray, "titles numbers"]:
    """Computes the numeric features of titles: shares, logarithms of counts, durations and their products."""
    names = set(structure.column_names) - {"title_id", "source", "channel"}
    columns = {name: structure[name].to_numpy() for name in names}
    airings = np.maximum(columns["airings"], 1)
    shares = {name: columns[name] / airings for name in ("numbered", "sub_titled", "dated", "evening")}
    counts = ("airings", "days", "hours", "sub_titles", "episodes", "dates", "channels")
    numbers = [*shares.values(), *(np.log1p(columns[name]) for name in counts)]
    numbers += [columns["sub_titles"] > 1, columns["airings"] == 1]
    numbers += [columns[name] / airings for name in ("sub_titles", "days")]
    minutes = np.clip(columns["minutes"], 1, 600)
    durations = np.eye(len(_DURATION_BOUNDS) + 1)[np.searchsorted(_DURATION_BOUNDS, minutes)]
    has_no_episodes = (shares["sub_titled"] == 0) & (shares["numbered"] == 0)
    products = [durations, durations * has_no_episodes[:, None], durations * shares["dated"][:, None]]
    return np.hstack([np.stack([*numbers, np.log(minutes)], axis=1), *products]).astype(np.float32)


def _channel_means(channels: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Computes the mean features of the other titles on the channel of each title, minus the global mean.

    The means are smoothed by _PRIOR_TITLES average titles.

    Args:
        channels: Channel number of each title.
        numbers: Numeric features, (titles, numbers).
    """
    count, mean = np.bincount(channels), numbers.mean(axis=0) if len(numbers) else numbers.sum(axis=0)
    sums = np.stack([np.bincount(channels, column) for column in numbers.T], axis=1)[channels]
    return (sums - numbers + _PRIOR_TITLES * mean) / (count[channels] - 1 + _PRIOR_TITLES)[:, None] - mean


def _title_words(title: str) -> set[str]:
    """Returns the words and the pairs of successive words of a title, in lower case."""
    words = _WORD.findall(title.casefold())
    return {*words, *(f"{first} {second}" for first, second in itertools.pairwise(words))}


def _ngrams(name: str) -> set[str]:
    """Returns the words of a channel name, and the words' character n-grams of length 3 to 5."""
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
