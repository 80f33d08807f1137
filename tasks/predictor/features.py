"""Computes the features of the linear model: the tokens of a title, and directions of its sentence vector.

A feature is the IDF of a token of the title. The features of each group of kinds (text, n-grams, context) are
scaled to unit norm, so that the groups have equal weight. The tokens are those of the title encoder, so the
linear model needs no vocabulary of its own.
"""

import numpy as np

from storage.arrays import Ragged, offsets_of
from storage.shapes import Float32, Int8
from tasks.text.words import CONTEXT, KINDS, NGRAM

TEXT_GROUP, NGRAM_GROUP, CONTEXT_GROUP = range(3)
GROUPS: Int8[np.ndarray, " kinds"] = np.full(len(KINDS), TEXT_GROUP, dtype=np.int8)  # group of each kind
GROUPS[NGRAM], GROUPS[CONTEXT:] = NGRAM_GROUP, CONTEXT_GROUP


def distinct_tokens(tokens: Ragged, token_count: int) -> Ragged:
    """Returns the distinct tokens of each title, sorted; ids from ``token_count`` on are dropped."""
    tokens = tokens.where(tokens.values < token_count)
    cells = np.sort(tokens.row_ids * token_count + tokens.values)  # np.unique takes ten times as long
    rows, ids = np.divmod(cells[np.diff(cells, prepend=-1) > 0], max(token_count, 1))
    return Ragged(offsets_of(np.bincount(rows, minlength=len(tokens))), ids)


def weigh_tokens(
    tokens: Ragged, kinds: Int8[np.ndarray, " rows"], idf: Float32[np.ndarray, " tokens"]
) -> tuple[Ragged, Float32[np.ndarray, " entries"]]:
    """Returns the ids of the distinct tokens of each title that are features, and their values.

    Args:
        tokens: Token ids of each title; ids from len(idf) on are ignored.
        kinds: Kind of each token id.
        idf: Inverse document frequency of each token; 0 if the token is no feature.
    """
    return weigh_distinct(distinct_tokens(tokens, len(idf)), kinds, idf)


def weigh_distinct(
    tokens: Ragged, kinds: Int8[np.ndarray, " rows"], idf: Float32[np.ndarray, " tokens"]
) -> tuple[Ragged, Float32[np.ndarray, " entries"]]:
    """Returns the same as ``weigh_tokens`` for the result of ``distinct_tokens``."""
    tokens = tokens.where(idf[tokens.values] > 0)
    values = idf[tokens.values].astype(np.float32)
    groups = tokens.row_ids * (CONTEXT_GROUP + 1) + GROUPS[kinds[tokens.values]]
    norms = np.sqrt(np.bincount(groups, values.astype(np.float64) ** 2))
    return tokens, (values / norms[groups]).astype(np.float32)


def inverse_frequencies(tokens: Ragged, token_count: int) -> Float32[np.ndarray, " tokens"]:
    """Computes the IDF of tokens: 1 + log((1 + n) / (1 + f)) if f > 0 of n titles have the token, else 0.

    Args:
        tokens: Distinct token ids of the training titles, below ``token_count``.
        token_count: Number of tokens.
    """
    frequency = np.bincount(tokens.values, minlength=token_count)
    return np.where(frequency > 0, 1 + np.log((1 + len(tokens)) / (1 + frequency)), 0).astype(np.float32)
