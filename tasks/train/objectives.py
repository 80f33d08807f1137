"""Objectives: what a batch is (sampler and collate) and its loss."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from storage.arrays import Ragged
from tasks.form import configurable, setting

STEPS, FEWEST = 16, 64  # a small guide's 5 epochs of 3 steps teach the sentence layer little (docs/LOG.md)


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
class Label:
    """A title belongs to the learnt vectors L_c of its categories; all others are negatives.

        loss = −τ · Σ_c t_c · log softmax_c( cos(v, L_c) / τ ),   t_c = 1 / (number of the title's categories)

    A title shown with how it airs has a lower τ: its tokens say more. After Wu et al. StarSpace. AAAI 2018.
    https://arxiv.org/abs/1709.03856 We differ: softmax over all, no margin over sampled ones (docs/LOG.md).
    """

    name: Literal["label"] = "label"
    batch_size: int = setting(512, "Titles in a step, fewer where an epoch would have too few steps", ge=2)
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


class GroupPlan(NamedTuple):
    """The titles of a batch."""

    rows: np.ndarray  # int64 (titles,): corpus rows
    chosen: np.ndarray  # int32 (titles,): the label under which each is shown


class Groups(NamedTuple):
    """The groups of a batch."""

    own: Tensor  # int64 (titles,): a title's group
    forbidden: Tensor  # bool (titles, groups): carries that group's label; False for its own group


@configurable
class _LeaveOneOut:
    """A title belongs to the other titles of its category, and to no other category's.

    An epoch shows every labelled training title once, under one of its labels drawn at random. A label's
    titles are cut into packs, a batch is a number of packs, its titles of one label a group. With a group's
    sum S of n unit vectors, score(i, own) = (v_i·S − v_i·v_i) / (n − 1) and score(i, h) = v_i·S_h / n_h,
    unless i has h's label too. The softmax brings means to unit norm, so that one temperature serves small
    and large groups; the hinge does not: its margin (the customer's design) is meant for the raw mean.
    """

    pack: int = setting(8, "Titles of one label drawn together", ge=2)
    packs: int = setting(128, "Packs in a step: a step shows pack × packs titles", ge=2)

    def parameters(self, labels: int, dim: int) -> dict[str, tuple[int, int]]:
        return {}  # a category is the mean of its titles

    def plan_epoch(self, rows: np.ndarray, labels: Ragged, rng: np.random.Generator) -> list[GroupPlan]:
        starts, lengths = labels.offsets[rows], labels.lengths[rows]
        chosen = labels.values[starts + (rng.random(len(rows)) * lengths).astype(np.int64)]
        order = rng.permutation(len(rows))
        order = order[chosen[order].argsort(kind="stable")]
        first = np.flatnonzero(np.diff(chosen[order], prepend=-1))
        within_label = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order)))
        packs = np.split(order, np.flatnonzero(within_label % self.pack == 0)[1:])
        drawn = np.split(rng.permutation(len(packs)), range(self.packs, len(packs), self.packs))
        batches = [np.concatenate([packs[number] for number in numbers]) for numbers in drawn]
        return [GroupPlan(rows[batch], chosen[batch]) for batch in batches]

    def collate(self, plan: GroupPlan, labels: Ragged, aired: np.ndarray) -> Groups:
        names, own = np.unique(plan.chosen, return_inverse=True)
        carried = labels.take(plan.rows)
        found = np.searchsorted(names, carried.values).clip(max=len(names) - 1)
        here = names[found] == carried.values
        forbidden = np.zeros((len(plan.rows), len(names)), dtype=bool)
        forbidden[carried.owners[here], found[here]] = True
        forbidden[np.arange(len(plan.rows)), own] = False
        return Groups(torch.from_numpy(own.astype(np.int64)), torch.from_numpy(forbidden))

    @staticmethod
    def scores(vectors: Tensor, groups: Groups, *, unit_means: bool) -> tuple[Tensor, Tensor]:
        # Of unit vectors: (titles, groups), a title's own group without itself; and which are not alone.
        n_groups, own = groups.forbidden.shape[1], groups.own.unsqueeze(1)
        sums = vectors.new_zeros(n_groups, vectors.shape[1])  # (groups, dim)
        if vectors.device.type == "cpu":
            sums = sums.index_add(0, groups.own, vectors)
        else:  # a GPU's index_add adds in another order every time; its index_put sorts first
            sums = sums.index_put((groups.own,), vectors, accumulate=True)
        sizes = torch.bincount(groups.own, minlength=n_groups).to(vectors.dtype)
        products = vectors @ sums.T  # (titles, groups)
        itself = torch.linalg.vecdot(vectors, vectors)  # 1, or 0 for a title of which dropout left nothing
        others, with_self = sizes[groups.own] - 1, products.gather(1, own).squeeze(1)
        rest = with_self - itself
        if unit_means:
            squared = torch.linalg.vecdot(sums, sums)
            length = (squared[groups.own] - 2 * with_self + itself).clamp(min=1e-6).sqrt()  # ‖S − v‖
            of_own, scores = rest / length, products / squared.clamp(min=1e-12).sqrt()
        else:
            of_own, scores = rest / others.clamp(min=1), products / sizes
        return scores.scatter(1, own, of_own.unsqueeze(1)), others > 0


@configurable
class LeaveOneOutSoftmax(_LeaveOneOut):
    """Cross-entropy of a title's own group against all groups of the batch."""

    name: Literal["leave_one_out_softmax"] = "leave_one_out_softmax"
    temperature: float = setting(0.2, "Divides the cosines; lower pulls harder", gt=0)

    def loss(self, vectors: Tensor, groups: Groups, parameters: Mapping[str, Tensor] | None = None) -> Tensor:
        """Mean over the titles that are not alone; zero (and no gradient) where all are."""
        scores, counted = self.scores(vectors, groups, unit_means=True)
        logits = (scores / self.temperature).masked_fill(groups.forbidden, float("-inf"))
        return _mean(F.cross_entropy(logits, groups.own, reduction="none") * self.temperature, counted)


@configurable
class LeaveOneOutHinge(_LeaveOneOut):
    """Margin ranking of a title's own group against the groups that come too near."""

    name: Literal["leave_one_out_hinge"] = "leave_one_out_hinge"
    margin: float = setting(0.2, "How much nearer its own group must be", gt=0, le=2)

    def loss(self, vectors: Tensor, groups: Groups, parameters: Mapping[str, Tensor] | None = None) -> Tensor:
        """Mean over the titles that are not alone of the mean over the groups that violate the margin."""
        scores, counted = self.scores(vectors, groups, unit_means=False)
        own = groups.own.unsqueeze(1)
        excluded = groups.forbidden.scatter(1, own, True)
        violations = (self.margin - scores.gather(1, own) + scores).clamp(min=0) * ~excluded
        return _mean(violations.sum(1) / (violations > 0).sum(1).clamp(min=1), counted)


def _mean(each: Tensor, counted: Tensor) -> Tensor:
    return torch.where(counted, each, torch.zeros_like(each)).sum() / counted.sum().clamp(min=1)


Objective = Label | LeaveOneOutHinge | LeaveOneOutSoftmax
