"""Titles against the learnt vectors of their categories."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from storage.arrays import Ragged
from tasks.form import configurable, setting
from tasks.train.objectives.base import BaseObjective

STEPS, FEWEST = 16, 64  # a small guide's 5 epochs of 3 steps teach the sentence layer little (docs/log)


class LabelPlan(NamedTuple):
    """The titles of a batch."""

    rows: np.ndarray  # int64 (titles,): corpus rows


class LabelTargets(NamedTuple):
    """Which categories the titles of a batch have, one entry for each pair."""

    titles: Tensor  # int64 (entries,), ascending: position in the batch
    labels: Tensor  # int64 (entries,): label id
    shares: Tensor  # float32 (entries,): they sum to one for each title
    aired: Tensor  # bool (titles,): is shown with how it airs


@configurable
class LabelMode(BaseObjective):
    """A title belongs to the learnt vectors L_c of its categories; all others are negatives.

        loss = −τ · Σ_c t_c · log softmax_c( cos(v, L_c) / τ ),   t_c = 1 / (number of the title's categories)

    A title shown with how it airs has a lower τ: its tokens say more. After Wu et al. StarSpace. AAAI 2018.
    https://arxiv.org/abs/1709.03856 We differ: softmax over all, no margin over sampled ones (docs/log).
    """

    batch_size: int = setting(512, "Titles in a step, fewer where an epoch would have too few steps", ge=1)
    temperature: float = setting(0.4, "Divides the cosines of a title alone; lower pulls harder", gt=0)
    context_temperature: float = setting(0.2, "Divides the cosines of a title with how it airs", gt=0)

    def parameters(self, labels: int, dim: int) -> dict[str, tuple[int, int]]:
        """Shapes of what is learnt beside the token rows: a vector for each label."""
        return {"labels": (labels, dim)}

    def plan_epoch(self, rows: np.ndarray, labels: Ragged, rng: np.random.Generator) -> list[LabelPlan]:
        """The batches of one epoch: every title once, in a new order; STEPS of FEWEST titles at least."""
        size = min(self.batch_size, max(FEWEST, len(rows) // STEPS))
        bounds = range(size, len(rows), size)
        return [LabelPlan(batch) for batch in np.split(rng.permutation(rows), bounds)]

    def collate(self, plan: LabelPlan, labels: Ragged, aired: np.ndarray) -> LabelTargets:
        """The categories of a batch, each title's with equal shares."""
        own = labels.take(plan.rows)
        shares = (1.0 / own.lengths[own.owners]).astype(np.float32)
        arrays = own.owners, own.values.astype(np.int64), shares, aired
        return LabelTargets(*(torch.from_numpy(array) for array in arrays))

    def loss(self, vectors: Tensor, targets: LabelTargets, parameters: Mapping[str, Tensor]) -> Tensor:
        """Mean over unit vectors (titles, dim); ``parameters["labels"]`` is (labels, dim), of any length."""
        temperatures = vectors.new_full((len(vectors),), self.temperature)
        temperatures.masked_fill_(targets.aired, self.context_temperature)
        return _CrossEntropy.apply(vectors, parameters["labels"], targets, temperatures)


@configurable
class Label(LabelMode):
    """Label mode alone."""

    name: Literal["label"] = "label"


class _CrossEntropy(torch.autograd.Function):
    # The gradient is computed in the forward pass, where p = softmax(v·Lᵀ/τ) is at hand: dloss/dv =
    # (p − t)·L / n of unit L; dloss/dL = (p − t)ᵀ·v / n without its component along L, over L's length.
    @staticmethod
    def forward(ctx, vectors: Tensor, labels: Tensor, targets: LabelTargets, temperatures: Tensor) -> Tensor:
        lengths = torch.linalg.vector_norm(labels, dim=1, keepdim=True).clamp_(min=1e-12)
        units, shares, count = labels / lengths, targets.shares.to(vectors.dtype), len(vectors)
        cosines = (vectors @ units.T).to(vectors.dtype)
        logs = torch.log_softmax(cosines.div_(temperatures.unsqueeze(1)), 1)  # (titles, labels)
        own = targets.titles * len(labels) + targets.labels  # flat positions of the titles' categories
        weights = shares * temperatures.index_select(0, targets.titles)
        loss = -torch.dot(logs.view(-1).index_select(0, own), weights) / count
        if any(ctx.needs_input_grad):
            excess = logs.exp_().view(-1).index_add_(0, own, shares, alpha=-1.0).view_as(logs)
            excess.div_(count)  # (p − t) / n
            towards = (excess.T @ vectors).to(vectors.dtype)  # (labels, dim)
            across = towards.addcmul_(units, torch.linalg.vecdot(towards, units).unsqueeze(1), value=-1.0)
            across.div_(lengths)
            ctx.save_for_backward((excess @ units).to(vectors.dtype), across)
        return loss

    @staticmethod
    def backward(ctx, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        of_vectors, of_labels = ctx.saved_tensors
        return of_vectors * grads[0], of_labels * grads[0], None, None
