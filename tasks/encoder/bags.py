"""Computes title vectors by the bag encoder (bag.py) in torch, with gradients, for training.

The forward pass sums rows per title, and the backward pass sums gradients of titles per row. Both passes use
the same triples of title, token and weight. The backward pass sorts the triples by token with a radix sort.
It takes a quarter of the time of embedding_bag (14 ms instead of 55 ms on two cores, for 512 titles of 80
tokens).

Each row is gathered once per step: ``Bags.ids`` contains the ids of the distinct rows, and ``Bags.tokens``
contains, for each token, the position of its row in ``ids``.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from storage.arrays import Ragged
from storage.shapes import Float, Float32, Int64
from storage.tables.segment_sums import count_entries, segment_sum, sum_bags
from tasks.encoder.bag import MIN_NORM, Bag
from tasks.text.words import CONTEXT


class Bags(NamedTuple):
    """Bags of the titles of a batch. A bag is the list of tokens of a title."""

    ids: Int64[Tensor, " unique"]  # sorted table ids of the rows of the step
    tokens: Int64[Tensor, " entries"]  # position in ids of each entry; entries are ordered by title
    kinds: Int64[Tensor, " entries"]  # kind of each entry (tasks.text.words.KINDS)
    entry_titles: Int64[Tensor, " entries"]  # title of each entry, as its position in the batch
    offsets: Int64[Tensor, " titles+1"]  # offsets of the entries of each title
    features: Float32[Tensor, "titles features"]  # sentence features x of each title; zero if it has none

    def to(self, device: torch.device) -> "Bags":
        """Returns a copy of the bags on a device."""
        if self.ids.device == device:
            return self
        return Bags(*(tensor.to(device, non_blocking=True) for tensor in self))


class Bagger:
    """Builds bags from token ids. ``kinds``, int8 (tokens,), is the kind of each token of the vocabulary."""

    def __init__(self, kinds: np.ndarray) -> None:
        self.kinds = np.array(kinds)
        # Whether the batch contains a token; finds the distinct tokens of a batch without sorting.
        self._is_present = np.zeros(len(kinds), dtype=bool)
        self._position = np.zeros(len(kinds), dtype=np.int64)  # position of a token among the distinct tokens

    def bags(
        self, tokens: Ragged, keep: np.ndarray | None = None, features: np.ndarray | None = None
    ) -> Bags:
        """Builds the bags of a batch.

        Args:
            tokens: Token ids of each title.
            keep: Whether to keep each token of each title, bool (entries,); None: all tokens are kept.
            features: Sentence features x, float32 (titles, features); None: no features.
        """
        tokens = tokens if keep is None else tokens.where(keep)
        offsets, ids = np.array(tokens.offsets), tokens.values
        ids = ids.astype(np.int64)  # torch would convert another index type at every gather
        titles = np.repeat(np.arange(len(tokens)), np.diff(offsets))
        self._is_present[ids] = True
        distinct_ids = np.flatnonzero(self._is_present)
        self._is_present[distinct_ids] = False
        self._position[distinct_ids] = np.arange(len(distinct_ids))
        arrays = (distinct_ids, self._position.take(ids), self.kinds.take(ids), titles, offsets)
        features = np.zeros((len(tokens), 0), dtype=np.float32) if features is None else features
        tensors = [torch.from_numpy(array.astype(np.int64, copy=False)) for array in arrays]
        return Bags(*tensors, features=torch.from_numpy(features))


def encode_bags(
    encoder: Bag,
    rows: Float[Tensor, "unique dim"],
    bags: Bags,
    layer: Float[Tensor, "dim features"] | None = None,
) -> Float[Tensor, "titles dim"]:
    """Computes the vectors of titles as ``Bag.encode`` does, with gradients for rows and layer.

    Args:
        encoder: The encoder.
        rows: Embedding rows of the tokens ``bags.ids``.
        bags: Tokens and sentence features x of each title.
        layer: Trained layer W; None: the sentence features are ignored.
    """
    weights = entry_weights(encoder, bags)
    bag = _unit(_SumRows.apply(rows, bags.tokens, bags.entry_titles, bags.offsets, weights))
    if layer is None or not bags.features.shape[1]:
        return bag
    projected_features = (bags.features @ layer.T).to(bag.dtype)
    return _unit(bag + sentence_scales(encoder, bags).to(bag.dtype) * _unit(projected_features))


def entry_weights(encoder: Bag, bags: Bags) -> Float[Tensor, " entries"]:
    """Returns the weight of each entry (token of a title), α_kind / n_kind^length_power."""
    alpha = _kind_weights(encoder, bags.kinds.device)
    cell = bags.entry_titles * len(alpha) + bags.kinds
    counts = count_entries(cell, (len(bags.offsets) - 1) * len(alpha)).view(-1, len(alpha))
    return (counts.clamp(min=1).float().pow(-encoder.length_power) * alpha).view(-1).index_select(0, cell)


def sentence_scales(encoder: Bag, bags: Bags) -> Float[Tensor, "titles 1"]:
    """Returns the factor β · |x| of the sentence part of each title."""
    x = bags.features
    has_context = (
        x.new_zeros(len(x)).index_add_(0, bags.entry_titles, (bags.kinds >= CONTEXT).to(x.dtype)) > 0
    )
    beta = x.new_full((len(x), 1), encoder.sentence).masked_fill_(
        has_context.unsqueeze(1), encoder.sentence_context
    )
    return beta * torch.linalg.vector_norm(x, dim=1, keepdim=True)


@lru_cache(maxsize=8)
def _kind_weights(encoder: Bag, device: torch.device) -> Tensor:
    """Returns the weights of all kinds on a device. Cached, because a copy to a GPU synchronizes."""
    return torch.from_numpy(encoder.kind_weights()).to(device)


def _unit(vectors: Tensor) -> Tensor:
    norms = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
    # The gradient of a zero vector is zero.
    return vectors * norms.masked_fill(norms < MIN_NORM, torch.inf).reciprocal()


class _SumRows(torch.autograd.Function):
    """Sums weighted rows per title. The backward pass sums the gradients of titles per row."""

    @staticmethod
    def forward(
        ctx, rows: Tensor, tokens: Tensor, titles: Tensor, offsets: Tensor, weights: Tensor
    ) -> Tensor:
        weights = weights.to(rows.dtype)
        ctx.save_for_backward(tokens, titles, weights)
        ctx.unique = len(rows)
        return sum_bags(rows, tokens, offsets, weights)

    @staticmethod
    def backward(ctx, *grads: Tensor) -> tuple[Tensor, None, None, None, None]:
        tokens, titles, weights = ctx.saved_tensors
        sums = segment_sum(grads[0].contiguous(), tokens, ctx.unique, rows=titles, weights=weights)
        return sums, None, None, None, None
