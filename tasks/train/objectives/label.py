"""Label objective: the vector of a title should be close to the vectors of its categories."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from storage.arrays import Ragged
from tasks.form import configurable, setting
from tasks.train.objectives.base import BaseObjective

# Small guides use smaller batches: 5 epochs of 3 steps do not train the sentence layer (docs/log).
MIN_STEPS, MIN_TITLES = 16, 64  # steps per epoch; titles per batch


class LabelPlan(NamedTuple):
    """The titles of one batch."""

    rows: np.ndarray  # int64 (titles,): rows of the titles in the corpus


class LabelTargets(NamedTuple):
    """The categories of the titles of one batch, with one entry per pair of a title and its category."""

    titles: Tensor  # int64 (entries,), position of the title in the batch, ascending
    labels: Tensor  # int64 (entries,): label id
    shares: Tensor  # float32 (entries,): sum to one per title
    aired: Tensor  # bool (titles,): whether the title has context tokens


@configurable
class LabelMode(BaseObjective):
    """Base class: cross-entropy of the categories of a title by cosines with trained category vectors L_c.

        loss = −τ · Σ_c t_c · log softmax_c( cos(v, L_c) / τ )

    v is the vector of the title. t_c is 1 / (number of categories of the title) for its categories, and 0 for
    all others. The temperature τ is lower for titles with context tokens, because these tokens are more
    informative.

    References: Wu et al. StarSpace. AAAI 2018. https://arxiv.org/abs/1709.03856

    We differ: a softmax over all categories instead of a margin over sampled categories.
    """

    batch_size: int = setting(512, "Titles per step; fewer if an epoch would have too few steps", ge=1)
    temperature: float = setting(
        0.4, "Temperature of titles without context; lower values give stronger gradients", gt=0
    )
    context_temperature: float = setting(0.2, "Temperature of titles with context", gt=0)

    def parameters(self, labels: int, dim: int) -> dict[str, tuple[int, int]]:
        """Returns the shape of the label vectors."""
        return {"labels": (labels, dim)}

    def plan_epoch(self, rows: np.ndarray, labels: Ragged, rng: np.random.Generator) -> list[LabelPlan]:
        """Shuffles the titles and splits them into batches, smaller ones if there would be few steps."""
        size = min(self.batch_size, max(MIN_TITLES, len(rows) // MIN_STEPS))
        bounds = range(size, len(rows), size)
        return [LabelPlan(batch) for batch in np.split(rng.permutation(rows), bounds)]

    def collate(self, plan: LabelPlan, labels: Ragged, aired: np.ndarray) -> LabelTargets:
        """Returns the categories of the titles of a batch. Those of a title have equal shares."""
        entries = labels.take(plan.rows)
        shares = (1.0 / entries.lengths[entries.row_ids]).astype(np.float32)
        arrays = entries.row_ids, entries.values.astype(np.int64), shares, aired
        return LabelTargets(*(torch.from_numpy(array) for array in arrays))

    def loss(self, vectors: Tensor, targets: LabelTargets, parameters: Mapping[str, Tensor]) -> Tensor:
        """Returns the mean loss of a batch.

        Args:
            vectors: Unit vectors of the titles, (titles, dim).
            targets: Categories of the titles.
            parameters: Contains ``labels``: the vectors of the categories, (labels, dim), of any norm.
        """
        temperatures = vectors.new_full((len(vectors),), self.temperature)
        temperatures.masked_fill_(targets.aired, self.context_temperature)
        return _CrossEntropy.apply(vectors, parameters["labels"], targets, temperatures)


@configurable
class Label(LabelMode):
    """Objective: the vector of a title should be close to the trained vectors of its categories."""

    name: Literal["label"] = "label"


class _CrossEntropy(torch.autograd.Function):
    # The forward pass also computes the gradients, because it has p = softmax(v·Lᵀ/τ). For n titles and unit
    # vectors L, dloss/dv = (p − t)·L / n, and dloss/dL is (p − t)ᵀ·v / n without its component along L,
    # divided by the length of L.
    @staticmethod
    def forward(ctx, vectors: Tensor, labels: Tensor, targets: LabelTargets, temperatures: Tensor) -> Tensor:
        lengths = torch.linalg.vector_norm(labels, dim=1, keepdim=True).clamp_(min=1e-12)
        units, shares, count = labels / lengths, targets.shares.to(vectors.dtype), len(vectors)
        cosines = (vectors @ units.T).to(vectors.dtype)
        log_p = torch.log_softmax(cosines.div_(temperatures.unsqueeze(1)), 1)  # (titles, labels)
        positions = targets.titles * len(labels) + targets.labels  # flat positions of the titles' categories
        weights = shares * temperatures.index_select(0, targets.titles)
        loss = -torch.dot(log_p.view(-1).index_select(0, positions), weights) / count
        if any(ctx.needs_input_grad):
            excess = log_p.exp_().view(-1).index_add_(0, positions, shares, alpha=-1.0).view_as(log_p)
            excess.div_(count)  # (p − t) / n
            label_grads = (excess.T @ vectors).to(vectors.dtype)  # (labels, dim)
            projections = torch.linalg.vecdot(label_grads, units).unsqueeze(1)
            label_grads.addcmul_(units, projections, value=-1.0).div_(lengths)
            ctx.save_for_backward((excess @ units).to(vectors.dtype), label_grads)
        return loss

    @staticmethod
    def backward(ctx, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        vector_grads, label_grads = ctx.saved_tensors
        return vector_grads * grads[0], label_grads * grads[0], None, None
