"""Bag encoder: a title vector is the normalised weighted sum of its token rows.

    v = normalise( Σ_kind  α_kind / n_kind^p · Σ_{token of that kind} row[token] )

α_kind is the weight of a kind of token. n_kind is the number of in-vocabulary tokens of that kind in the
title; the sum is divided by its power p (``length_power``), so that sixty n-grams do not outweigh three
words. If the corpus has sentence vectors (tasks/sentences), the sentence features x of a title are its
sentence vector plus that of its descriptions. A trained layer W maps x into the same space:

    v = normalise( bag + β · |x| · normalise(W x) )

The weight β is smaller for a title with context tokens (channel, hour and so on); |x| is larger if the
descriptions match the title.

An entry is a token of a title. A title without entries and without x has a zero vector (``Bags.has_input``).
The forward pass sums rows per title, and the backward pass sums title gradients per row, each in one
embedding-bag pass over the same (title, token, weight) triples. A radix sort by token makes the backward pass
four times as fast as that of embedding_bag (14 ms instead of 55 ms; two cores, 512 titles of 80 tokens). The
default weights are from our experiments (docs/log).

``Bags.ids`` are the distinct rows of a step and ``Bags.tokens`` the position of the row of each entry among
them, so that each row is gathered once.
"""

from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from storage.arrays import Ragged
from storage.segment_sums import count_entries, segment_sum, sum_bags
from storage.shapes import Float, Float32, Int64
from tasks.form import configurable, setting
from tasks.text.words import CONTEXT, KINDS

LAYER = "sentence"  # name of the parameter W
SMALLEST = 1e-12  # norms below it count as zero


class Bags(NamedTuple):
    """Titles of a batch as bags of table rows."""

    ids: Int64[Tensor, " unique"]  # sorted table ids of the rows of the step
    tokens: Int64[Tensor, " entries"]  # position in ids of each entry; entries are ordered by title
    kinds: Int64[Tensor, " entries"]  # kind of each entry (tasks.text.words.KINDS)
    titles: Int64[Tensor, " entries"]  # title (row of the batch) of each entry
    offsets: Int64[Tensor, " titles+1"]  # offsets of the entries of each title
    dense: Float32[Tensor, "titles features"]  # x of each title; zero if it has none

    @property
    def has_input(self) -> Tensor:
        """Whether each title has an entry or x, bool (titles,). The vectors of the others are zero."""
        return (self.offsets[1:] > self.offsets[:-1]) | self.dense.any(1)

    def to(self, device: torch.device) -> "Bags":
        """Copies the bags to a device."""
        if self.ids.device == device:
            return self
        return Bags(*(tensor.to(device, non_blocking=True) for tensor in self))


class Bagger:
    """Builds bags of tokens; ``kinds``, int8 (tokens,), has the kind of each token of the vocabulary."""

    # Distinct tokens are determined by a flag per token, which needs no sort.
    def __init__(self, kinds: np.ndarray) -> None:
        self.kinds = np.array(kinds)
        self._marked = np.zeros(len(kinds), dtype=bool)
        self._position = np.zeros(len(kinds), dtype=np.int64)

    def bags(self, tokens: Ragged, keep: np.ndarray | None = None, dense: np.ndarray | None = None) -> Bags:
        """Builds the bags of a batch.

        Args:
            tokens: Token ids of each title.
            keep: Selects entries, bool (entries,); None keeps all.
            dense: Sentence features x, float32 (titles, features); None: no features.
        """
        tokens = tokens if keep is None else tokens.where(keep)
        offsets, ids = np.array(tokens.offsets), tokens.values
        ids = ids.astype(np.int64)  # other index types are converted at every gather, which is slow
        titles = np.repeat(np.arange(len(tokens)), np.diff(offsets))
        self._marked[ids] = True
        unique = np.flatnonzero(self._marked)
        self._marked[unique] = False
        self._position[unique] = np.arange(len(unique))
        arrays = (unique, self._position.take(ids), self.kinds.take(ids), titles, offsets)
        dense = np.zeros((len(tokens), 0), dtype=np.float32) if dense is None else dense
        tensors = [torch.from_numpy(array.astype(np.int64, copy=False)) for array in arrays]
        return Bags(*tensors, dense=torch.from_numpy(dense))


@configurable
class Bag:
    """Bag encoder with a weight per kind of token. Kinds with weight 0 are omitted."""

    name: Literal["bag"] = "bag"
    word: float = setting(0.5, "Weight of words", ge=0)
    bigram: float = setting(0.3, "Weight of pairs of adjacent words", ge=0)
    ngram: float = setting(1.0, "Weight of character n-grams", title="Character n-grams", ge=0)
    edge: float = setting(0.3, "Weight of the first and the last word", ge=0)
    shape: float = setting(0.2, "Weight of the length and shape of a title", ge=0)
    raw: float = setting(0.3, "Weight of words and punctuation as written", title="As written", ge=0)
    mark: float = setting(0.2, "Weight of parts of a title that are not its name", title="Glued marks", ge=0)
    channel: float = setting(2.25, "Weight of the channels that air the title", ge=0)
    hour: float = setting(1.2, "Weight of the hours at which the title airs", ge=0)
    weekday: float = setting(0.45, "Weight of the weekdays on which the title airs", ge=0)
    duration: float = setting(1.2, "Weight of the durations of the airings", ge=0)
    manner: float = setting(2.25, "Weight of language, airings, sub-titles and episode numbers", ge=0)
    sentence: float = setting(2.0, "Weight β of the sentence vector of titles without context", ge=0)
    sentence_context: float = setting(0.5, "The same for titles with airing context", ge=0)
    description: float = setting(1.0, "Weight of description vectors relative to sentence vectors", ge=0)
    length_power: float = setting(
        0.5,
        "The sum of a kind is divided by its number of tokens to this power: 0: sum; 1: mean",
        ge=0,
        le=1,
    )
    nearest_slot: float = setting(
        0.0,
        "Weight of the nearest slot of objective rare_memory, which is appended to a title vector and "
        "doubles its dimensions; 0: no slot",
        ge=0,
    )

    def weights(self) -> Float[Tensor, " kinds"]:
        """Returns α of each kind, in the order of tasks.text.words.KINDS."""
        return torch.tensor([getattr(self, kind) for kind in KINDS], dtype=torch.float32)

    def values(self, bags: "Bags") -> Float[Tensor, " entries"]:
        """Returns the weight of each entry: α_kind / n_kind^length_power."""
        alpha = _weights(self, bags.kinds.device)
        cell = bags.titles * len(alpha) + bags.kinds
        counts = count_entries(cell, (len(bags.offsets) - 1) * len(alpha)).view(-1, len(alpha))
        return (counts.clamp(min=1).float().pow(-self.length_power) * alpha).view(-1).index_select(0, cell)

    def parameters(self, features: int, dim: int) -> dict[str, tuple[int, int]]:
        """Returns the shapes of the dense parameters by name: W, without columns if the corpus has no x."""
        return {LAYER: (dim, features)}

    def dense(
        self, sentences: np.ndarray, descriptions: np.ndarray
    ) -> Float32[np.ndarray, "titles features"]:
        """Returns the sentence features x: sentence vectors plus weighted description vectors."""
        return widen(sentences) + np.float32(self.description) * widen(descriptions)

    def encode(
        self,
        rows: Float[Tensor, "unique dim"],
        bags: Bags,
        layer: Float[Tensor, "dim features"] | None = None,
    ) -> Float[Tensor, "titles dim"]:
        """Computes unit vectors of titles; a title without entries and x has a zero vector.

        Args:
            rows: Rows of ``bags.ids``.
            bags: Entries and x of each title.
            layer: W; None: x is not used.
        """
        bag = _unit(_SumRows.apply(rows, bags.tokens, bags.titles, bags.offsets, self.values(bags)))
        if layer is None or not bags.dense.shape[1]:
            return bag
        return _unit(bag + self.sentence_part(bags, layer, bag.dtype))

    def sentence_part(
        self, bags: Bags, layer: Float[Tensor, "dim features"], dtype: torch.dtype = torch.float32
    ) -> Float[Tensor, "titles dim"]:
        """Returns the term that x adds to the unit-norm bag of each title: β · |x| · normalise(W x)."""
        return self.sentence_scales(bags).to(dtype) * _unit((bags.dense @ layer.T).to(dtype))

    def sentence_scales(self, bags: Bags) -> Float[Tensor, "titles 1"]:
        """Returns β · |x| of each title."""
        x = bags.dense
        aired = x.new_zeros(len(x)).index_add_(0, bags.titles, (bags.kinds >= CONTEXT).to(x.dtype)) > 0
        beta = x.new_full((len(x), 1), self.sentence).masked_fill_(aired.unsqueeze(1), self.sentence_context)
        return beta * torch.linalg.vector_norm(x, dim=1, keepdim=True)


@lru_cache(maxsize=8)
def _weights(encoder: Bag, device: torch.device) -> Tensor:
    """Returns the weights on the device; cached, because an upload in every step would synchronize."""
    return encoder.weights().to(device)


def widen(half: np.ndarray) -> np.ndarray:
    """Converts float16 to float32 by torch, nine times as fast as NumPy (0.11 ms, not 1.0; 512 titles)."""
    half = half if half.flags.writeable else half.copy()  # torch warns about read-only arrays
    return torch.from_numpy(half).float().numpy()


def _unit(vectors: Tensor) -> Tensor:
    norms = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
    return vectors * norms.masked_fill(norms < SMALLEST, torch.inf).reciprocal()  # no gradient if zero


class _SumRows(torch.autograd.Function):
    """Weighted row sums; the backward pass is a forward pass over the transposed bags."""

    @staticmethod
    def forward(ctx, rows: Tensor, tokens: Tensor, titles: Tensor, offsets: Tensor, values: Tensor) -> Tensor:
        values = values.to(rows.dtype)
        ctx.save_for_backward(tokens, titles, values)
        ctx.unique = len(rows)
        return sum_bags(rows, tokens, offsets, values)

    @staticmethod
    def backward(ctx, *grads: Tensor) -> tuple[Tensor, None, None, None, None]:
        tokens, titles, values = ctx.saved_tensors
        sums = segment_sum(grads[0].contiguous(), tokens, ctx.unique, rows=titles, weights=values)
        return sums, None, None, None, None
