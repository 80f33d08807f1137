"""Titles against the other titles of their categories."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from storage.arrays import Ragged
from storage.sums import count
from tasks.form import configurable, setting
from tasks.train.objectives.base import BaseObjective


class GroupPlan(NamedTuple):
    """The titles of a batch."""

    rows: np.ndarray  # int64 (titles,): corpus rows
    chosen: np.ndarray  # int32 (titles,): the label under which each is shown


class Groups(NamedTuple):
    """The groups of a batch."""

    own: Tensor  # int64 (titles,): a title's group
    forbidden: Tensor  # bool (titles, groups): carries that group's label; False for its own group


@configurable
class _LeaveOneOut(BaseObjective):
    """A title belongs to the other titles of its category, and to no other category's.

    An epoch shows every labelled training title once, under one of its labels drawn at random. A label's
    titles are cut into packs, a batch is a number of packs, its titles of one label a group. With a group's
    sum S of n unit vectors, score(i, own) = (v_i·S − v_i·v_i) / (n − 1) and score(i, h) = v_i·S_h / n_h,
    unless i has h's label too. The softmax brings means to unit norm, so that one temperature serves small
    and large groups; the hinge does not: its margin (the customer's design) is meant for the raw mean.
    """

    pack: int = setting(8, "Titles of one label drawn together", ge=2)
    packs: int = setting(128, "Packs in a step: a step shows pack × packs titles", ge=2)

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
        # Not by autocast's bfloat16: in small groups a difference of products would have few bits left.
        with torch.autocast(vectors.device.type, enabled=False):
            vectors = vectors.to(torch.promote_types(vectors.dtype, torch.float32))
            n_groups, own = groups.forbidden.shape[1], groups.own.unsqueeze(1)
            sums = vectors.new_zeros(n_groups, vectors.shape[1])  # (groups, dim)
            if vectors.device.type == "cpu":
                sums = sums.index_add(0, groups.own, vectors)
            else:  # a GPU's index_add adds in another order every time; its index_put sorts first
                sums = sums.index_put((groups.own,), vectors, accumulate=True)
            sizes = count(groups.own, n_groups).to(vectors.dtype)
            products = vectors @ sums.T  # (titles, groups)
            itself = torch.linalg.vecdot(
                vectors, vectors
            )  # 1, or 0 for a title of which dropout left nothing
            others, with_self = sizes.index_select(0, groups.own) - 1, products.gather(1, own).squeeze(1)
            rest = with_self - itself
            if unit_means:
                squared = torch.linalg.vecdot(sums, sums)
                of_group = squared.index_select(0, groups.own)
                length = (of_group - 2 * with_self + itself).clamp(min=1e-6).sqrt()  # ‖S − v‖
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
