"""Computes the token features of the linear part of the predictor.

A title has a feature for each of its tokens, whose value is the inverse document frequency (IDF) of the
token. The features of each group of token kinds (text, n-grams, context) are scaled to unit norm, so that the
groups have equal weight. The tokens are those of the title encoder, so the linear part needs no separate
vocabulary.
"""

import numpy as np

from storage.arrays import Ragged, offsets_of
from storage.shapes import Float32, Int8
from tasks.text.words import CONTEXT, KINDS, NGRAM

TEXT_GROUP, NGRAM_GROUP, CONTEXT_GROUP = range(3)
GROUP_OF_KIND: Int8[np.ndarray, " kinds"] = np.full(len(KINDS), TEXT_GROUP, dtype=np.int8)
GROUP_OF_KIND[NGRAM], GROUP_OF_KIND[CONTEXT:] = NGRAM_GROUP, CONTEXT_GROUP


def distinct_tokens(tokens: Ragged, token_count: int) -> Ragged:
    """Returns the distinct token ids of each title, ascending, without ids of ``token_count`` or more."""
    tokens = tokens.where(tokens.values < token_count)
    cells = np.sort(tokens.row_ids * token_count + tokens.values)  # np.unique takes ten times as long
    rows, ids = np.divmod(cells[np.diff(cells, prepend=-1) > 0], max(token_count, 1))
    return Ragged(offsets_of(np.bincount(rows, minlength=len(tokens))), ids)


def weigh_tokens(
    tokens: Ragged, kinds: Int8[np.ndarray, " rows"], idf: Float32[np.ndarray, " tokens"]
) -> tuple[Ragged, Float32[np.ndarray, " entries"]]:
    """Computes the token features of titles.

    Args:
        tokens: Token ids of each title; ids of len(idf) or more are ignored.
        kinds: Kind of each token id.
        idf: Inverse document frequency of each token; 0 for a token that is not a feature.

    Returns:
        The distinct token ids of each title, and the value of the feature of each of these tokens.
    """
    return weigh_distinct(distinct_tokens(tokens, len(idf)), kinds, idf)


def weigh_distinct(
    tokens: Ragged, kinds: Int8[np.ndarray, " rows"], idf: Float32[np.ndarray, " tokens"]
) -> tuple[Ragged, Float32[np.ndarray, " entries"]]:
    """Computes the token features of titles like ``weigh_tokens``, from the result of ``distinct_tokens``."""
    tokens = tokens.where(idf[tokens.values] > 0)
    values = idf[tokens.values].astype(np.float32)
    groups = tokens.row_ids * (CONTEXT_GROUP + 1) + GROUP_OF_KIND[kinds[tokens.values]]
    norms = np.sqrt(np.bincount(groups, values.astype(np.float64) ** 2))
    return tokens, (values / norms[groups]).astype(np.float32)


def inverse_frequencies(tokens: Ragged, token_count: int) -> Float32[np.ndarray, " tokens"]:
    """Computes the IDF of tokens: 1 + log((1 + n) / (1 + f)) if f of n titles have the token, and 0 if f = 0.

    Args:
        tokens: Distinct token ids of each of the n training titles, below ``token_count``.
        token_count: Number of tokens.
    """
    frequency = np.bincount(tokens.values, minlength=token_count)
    return np.where(frequency > 0, 1 + np.log((1 + len(tokens)) / (1 + frequency)), 0).astype(np.float32)
