"""A title belongs to its categories' own vectors: label mode.

Every category has a learnt vector L_c; every category is a negative, and the title's own share the target evenly:

    loss = −τ · Σ_c t_c · log softmax_c( cos(v, L_c) / τ ),   t_c = 1 / (number of the title's categories)

A title that is shown with how it airs has a lower τ than a title alone: its tokens say more, so more may be asked of it.

The categories' vectors are parameters of the run: they are in its checkpoint, and not in the Lexicon. No pair of titles
and no negative is drawn, so a batch is any set of titles.

References:
    Wu et al. StarSpace: Embed All The Things! AAAI 2018, "multiclass classification". https://arxiv.org/abs/1709.03856
    We differ: softmax over all categories instead of a margin over sampled ones; docs/LOG.md has both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from storage.arrays import Ragged
from tasks.form import FORM


class Shown(NamedTuple):
    """One batch, before anything is gathered.

    Attributes:
        rows: int64 (titles,): corpus rows.
    """

    rows: np.ndarray


class Targets(NamedTuple):
    """Which categories the titles of a batch have: one entry a pair.

    Attributes:
        titles: int64 (entries,), rising: place in the batch.
        labels: int64 (entries,): label id.
        shares: float32 (entries,): sum to one a title.
        aired: bool (titles,): is shown with how it airs.
    """

    titles: Tensor
    labels: Tensor
    shares: Tensor
    aired: Tensor


@dataclass(frozen=True, kw_only=True)
class Label:
    """Cross-entropy of a title's categories against all categories, by cosine with the categories' own vectors."""

    __pydantic_config__ = FORM
    name: Literal["label"] = "label"
    batch: int = field(default=512, metadata={"description": "Titles a step", "ge": 2})
    temperature: float = field(default=0.4, metadata={"description": "Divides the cosines of a title alone; lower pulls harder", "gt": 0})
    context_temperature: float = field(default=0.2, metadata={"description": "Divides the cosines of a title with how it airs", "gt": 0})

    def parameters(self, labels: int, dim: int) -> dict[str, tuple[int, int]]:
        """Shapes of what is learnt beside the token rows: a vector a label."""
        return {"labels": (labels, dim)}

    def plan_epoch(self, rows: np.ndarray, labels: Ragged, rng: np.random.Generator) -> list[Shown]:
        """The batches of one epoch: every title once, in an order drawn anew; arguments as in leave-one-out."""
        return [Shown(batch) for batch in np.split(rng.permutation(rows), range(self.batch, len(rows), self.batch))]

    def collate(self, plan: Shown, labels: Ragged, aired: np.ndarray) -> Targets:
        """Categories of a batch, each title's with equal shares."""
        own = labels.take(plan.rows)
        lengths = own.lengths
        titles = np.repeat(np.arange(len(plan.rows)), lengths)
        arrays = titles, own.values.astype(np.int64), (1.0 / lengths[titles]).astype(np.float32), aired
        return Targets(*(torch.from_numpy(array) for array in arrays))

    def loss(self, vectors: Tensor, targets: Targets, parameters: Mapping[str, Tensor]) -> Tensor:
        """Mean over the titles; zero of none.

        Args:
            vectors: Unit vectors (titles, dim).
            targets: Their categories.
            parameters: ``labels``, (labels, dim), of any length.
        """
        temperatures = vectors.new_full((len(vectors),), self.temperature).masked_fill_(targets.aired, self.context_temperature)
        return _CrossEntropy.apply(vectors, parameters["labels"], targets, temperatures)


class _CrossEntropy(torch.autograd.Function):
    """The loss with its analytic gradient, made in the forward pass, where the softmax is at hand.

    With p = softmax(v·Lᵀ/τ) of unit L and τ the title's, dloss/dv = (p − t)·L / n and dloss/dL = (p − t)ᵀ·v / n; what of the
    latter is along L is taken out, and the rest divided by L's length before it was brought to one.
    """

    @staticmethod
    def forward(ctx, vectors: Tensor, labels: Tensor, targets: Targets, temperatures: Tensor) -> Tensor:
        lengths = torch.linalg.vector_norm(labels, dim=1, keepdim=True).clamp_(min=1e-12)
        units = labels / lengths
        shares = targets.shares.to(vectors.dtype)
        logs = torch.log_softmax((vectors @ units.T).to(vectors.dtype).div_(temperatures.unsqueeze(1)), 1)  # (titles, labels)
        flat = targets.titles * len(labels) + targets.labels  # where a title's own categories are
        count = len(vectors)
        loss = -torch.dot(logs.view(-1).index_select(0, flat), shares * temperatures.index_select(0, targets.titles)) / count
        if any(ctx.needs_input_grad):
            excess = logs.exp_().view(-1).index_add_(0, flat, shares, alpha=-1.0).view_as(logs).div_(count)  # (p − t) / n
            towards = (excess.T @ vectors).to(vectors.dtype)  # (labels, dim)
            across = towards.addcmul_(units, torch.linalg.vecdot(towards, units).unsqueeze(1), value=-1.0).div_(lengths)
            ctx.save_for_backward((excess @ units).to(vectors.dtype), across)
        return loss

    @staticmethod
    def backward(ctx, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        of_vectors, of_labels = ctx.saved_tensors
        return of_vectors * grads[0], of_labels * grads[0], None, None
