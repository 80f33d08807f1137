"""A title is the weighted sum of its tokens' rows, at unit norm; each kind of token has one voice.

    v = normalise( Σ_kind  α_kind / √n_kind · Σ_{token of that kind} row[token] )

n_kind is the number of the title's known tokens of that kind, so that sixty n-grams do not drown three words; the root is
``length_power`` one half, 0 sums and 1 takes the mean by true length. A title without entries is a zero vector, and
``Bags.known`` says so.

Forward and backward are both one embedding-bag pass: forward sums rows into titles, backward sums the titles' gradients
into rows, over the same (title, token, value) triples sorted by token. The sort is a radix sort, and the pass is four times
as fast as autograd's own backward of embedding_bag (14 ms against 55, same run, two cores, 512 titles of 80 tokens).

References:
    Recipe and weights from our own trials; docs/LOG.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from storage.arrays import stable_order
from tasks.form import FORM
from tasks.preprocess.bags import Bags

SMALLEST = 1e-12  # of a norm that is divided by


@dataclass(frozen=True, kw_only=True)
class Bag:
    """Weights of the kinds of tokens; a kind of weight 0 is left out."""

    __pydantic_config__ = FORM
    name: Literal["bag"] = "bag"
    word: float = field(default=0.5, metadata={"description": "Weight of words", "ge": 0})
    bigram: float = field(default=0.3, metadata={"description": "Weight of two words in a row", "ge": 0})
    ngram: float = field(default=1.0, metadata={"title": "Character n-grams", "description": "Weight of character n-grams", "ge": 0})
    edge: float = field(default=0.3, metadata={"description": "Weight of the first and the last word", "ge": 0})
    shape: float = field(default=0.2, metadata={"description": "Weight of length and shape", "ge": 0})
    raw: float = field(default=0.3, metadata={"title": "As written", "description": "Weight of words and punctuation as written", "ge": 0})
    mark: float = field(default=0.2, metadata={"title": "Glued marks", "description": "Weight of what was glued to the title", "ge": 0})
    channel: float = field(default=2.25, metadata={"description": "Weight of the channels that air it", "ge": 0})
    hour: float = field(default=1.2, metadata={"description": "Weight of the hours at which it airs", "ge": 0})
    weekday: float = field(default=0.45, metadata={"description": "Weight of the weekdays on which it airs", "ge": 0})
    duration: float = field(default=1.2, metadata={"description": "Weight of its durations", "ge": 0})
    manner: float = field(default=2.25, metadata={"description": "Weight of language, airings, sub-titles and episode numbers", "ge": 0})

    length_power: float = field(default=0.5, metadata={"description": "Power of the number of tokens that a kind's sum is divided by: 0 sums, 1 is the mean", "ge": 0, "le": 1})

    def weights(self) -> Tensor:
        """float32 (kinds,), in the order of tasks.tokenize.words.KINDS."""
        return torch.tensor([self.word, self.bigram, self.ngram, self.edge, self.shape, self.raw, self.mark, self.channel, self.hour, self.weekday, self.duration, self.manner])

    def values(self, bags: Bags) -> Tensor:
        """Weight of each entry, α_kind / n_kind^length_power: float32 (entries,)."""
        alpha = self.weights().to(bags.kinds.device)
        cell = bags.titles * len(alpha) + bags.kinds
        counts = torch.bincount(cell, minlength=(len(bags.offsets) - 1) * len(alpha)).view(-1, len(alpha))  # (titles, kinds)
        return (counts.clamp(min=1).float().pow(-self.length_power) * alpha).view(-1).index_select(0, cell)

    def encode(self, rows: Tensor, bags: Bags) -> Tensor:
        """Unit vectors of titles; a title without entries is a zero vector.

        Args:
            rows: float32 (unique, dim): the rows of ``bags.ids``.
            bags: The titles.

        Returns:
            float32 (titles, dim).
        """
        return _UnitNorm.apply(sum_rows(rows, bags, self.values(bags)))  # (titles, dim)


def sum_rows(rows: Tensor, bags: Bags, values: Tensor) -> Tensor:
    """Weighted sums of rows, float32 (titles, dim); ``values`` (entries,) are the weights."""
    return _SumRows.apply(rows, bags.tokens, bags.titles, bags.offsets, values)


def encode_padded(encoder: Bag, rows: Tensor, tokens: Tensor, kinds: Tensor, lengths: Tensor) -> Tensor:
    """The same vectors from the padded form, for code that has rectangles; a place behind a title's last counts for nothing.

    Args:
        encoder: Whose weights are taken.
        rows: float32 (rows, dim).
        tokens: int64 (titles, longest): which row; anything valid behind a title's last.
        kinds: int64 (titles, longest), likewise.
        lengths: int64 (titles,): how many count.

    Returns:
        float32 (titles, dim), unit norm; zero where nothing counts.
    """
    alpha = encoder.weights().to(rows)
    mask = torch.arange(tokens.shape[1], device=tokens.device) < lengths.unsqueeze(1)  # (titles, longest)
    counts = torch.zeros(len(tokens), len(alpha), device=rows.device).scatter_add_(1, kinds, mask.float())  # (titles, kinds)
    values = alpha[kinds] * counts.gather(1, kinds).clamp(min=1).pow(-encoder.length_power) * mask
    return F.normalize(torch.bmm(values.to(rows).unsqueeze(1), rows[tokens]).squeeze(1), dim=1)


class _UnitNorm(torch.autograd.Function):
    """Vectors at unit norm; a zero vector stays one and passes no gradient. d/dx of v = x/‖x‖ is (g − v (v·g)) / ‖x‖."""

    @staticmethod
    def forward(ctx, sums: Tensor) -> Tensor:
        norms = torch.linalg.vector_norm(sums, dim=1, keepdim=True)
        inverse = norms.reciprocal().masked_fill_(norms < SMALLEST, 0)
        vectors = sums * inverse
        ctx.save_for_backward(vectors, inverse)
        return vectors

    @staticmethod
    def backward(ctx, *grads: Tensor) -> Tensor:
        vectors, inverse = ctx.saved_tensors
        return torch.addcmul(grads[0], vectors, torch.linalg.vecdot(vectors, grads[0]).unsqueeze(1), value=-1.0).mul_(inverse)


class _SumRows(torch.autograd.Function):
    """Weighted sums of rows, the backward pass as a forward pass over the transposed bags."""

    @staticmethod
    def forward(ctx, rows: Tensor, tokens: Tensor, titles: Tensor, offsets: Tensor, values: Tensor) -> Tensor:
        ctx.save_for_backward(tokens, titles, values)
        ctx.unique = len(rows)
        return F.embedding_bag(tokens, rows, offsets, mode="sum", per_sample_weights=values.to(rows.dtype), include_last_offset=True)

    @staticmethod
    def backward(ctx, *grads: Tensor) -> tuple[Tensor, None, None, None, None]:
        tokens, titles, values = ctx.saved_tensors
        order = torch.from_numpy(stable_order(tokens.numpy(), ctx.unique)) if tokens.device.type == "cpu" else torch.sort(tokens, stable=True).indices
        starts = F.pad(torch.bincount(tokens, minlength=ctx.unique).cumsum(0), (1, 0))
        grad = grads[0].contiguous()
        return (
            F.embedding_bag(titles.take(order), grad, starts, mode="sum", per_sample_weights=values.take(order).to(grad.dtype), include_last_offset=True),
            None,
            None,
            None,
            None,
        )
