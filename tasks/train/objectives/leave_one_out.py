"""A title belongs to the other titles of its category, and to no other category's: leave-one-out in groups.

An epoch shows every labelled training title once, under one of its labels drawn at random. Titles of a label are cut
into packs, packs are shuffled, a batch is a number of packs; all titles of the batch under one label are a group. With
the group's sum S of n unit vectors, the group without title i is the mean (S − v_i)/(n − 1), so

    score(i, own group)  = (v_i·S − v_i·v_i) / (n − 1)
    score(i, group h)    = v_i·S_h / n_h

and all scores of a batch are one matrix product: no title is encoded twice, no negative is drawn. A title that carries
group h's label too is never its negative. Means are not brought to unit norm for the hinge (the margin is meant for
the raw mean); for the softmax they are, which does no worse and lets one temperature serve small and large groups. A
corpus row is a show key, so no two titles of a batch are one show.

References:
    Hinge with margin 0.2 over bags: the customer's design. Softmax over in-batch groups: trials in docs/LOG.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from storage.arrays import Ragged
from tasks.form import FORM


class Plan(NamedTuple):
    """One batch, before anything is gathered.

    Attributes:
        rows: int64 (titles,): corpus rows.
        chosen: int32 (titles,): label under which each is shown.
    """

    rows: np.ndarray
    chosen: np.ndarray


class Groups(NamedTuple):
    """Which title is in which group, and which groups a title may not be pushed away from.

    Attributes:
        own: int64 (titles,): its group.
        forbidden: bool (titles, groups): carries that group's label; its own group is False.
    """

    own: Tensor
    forbidden: Tensor


@dataclass(frozen=True, kw_only=True)
class _LeaveOneOut:
    """Sampler, collate and scores that both losses share."""

    __pydantic_config__ = FORM
    pack: int = field(default=8, metadata={"description": "Titles of one label drawn together", "ge": 2})
    packs: int = field(default=128, metadata={"description": "Packs a step: a step shows pack × packs titles", "ge": 2})

    def parameters(self, labels: int, dim: int) -> dict[str, tuple[int, int]]:
        """Shapes of what is learnt beside the token rows: nothing, a category is the mean of its titles."""
        return {}

    def plan_epoch(self, rows: np.ndarray, labels: Ragged, rng: np.random.Generator) -> list[Plan]:
        """The batches of one epoch.

        Args:
            rows: Labelled training titles, int64.
            labels: Label ids of every title of the corpus.
            rng: Source of chance.
        """
        starts, lengths = labels.offsets[rows], labels.lengths[rows]
        chosen = labels.values[starts + (rng.random(len(rows)) * lengths).astype(np.int64)]
        order = rng.permutation(len(rows))
        order = order[np.argsort(chosen[order], kind="stable")]
        first = np.flatnonzero(np.diff(chosen[order], prepend=-1))
        place = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order)))  # place within its label
        bounds = np.flatnonzero(place % self.pack == 0)
        packs = np.split(order, bounds[1:])
        shuffled = [packs[number] for number in rng.permutation(len(packs))]
        batches = [np.concatenate(shuffled[start : start + self.packs]) for start in range(0, len(shuffled), self.packs)]
        return [Plan(rows[batch], chosen[batch]) for batch in batches]

    def collate(self, plan: Plan, labels: Ragged, aired: np.ndarray) -> Groups:
        """Groups of a batch: titles shown under one label are one group, whichever pack they came in."""
        names, own = np.unique(plan.chosen, return_inverse=True)
        carried = labels.take(plan.rows)
        title = carried.owners
        found = np.searchsorted(names, carried.values).clip(max=len(names) - 1)
        here = names[found] == carried.values
        forbidden = np.zeros((len(plan.rows), len(names)), dtype=bool)
        forbidden[title[here], found[here]] = True
        forbidden[np.arange(len(plan.rows)), own] = False
        return Groups(torch.from_numpy(own.astype(np.int64)), torch.from_numpy(forbidden))

    @staticmethod
    def scores(vectors: Tensor, groups: Groups, *, unit_means: bool) -> tuple[Tensor, Tensor]:
        """Score of every title with every group, its own without itself.

        Args:
            vectors: Unit vectors (titles, dim).
            groups: Their groups.
            unit_means: Whether the means are brought to unit norm.

        Returns:
            Scores (titles, groups), and which titles have company in their group (titles,).
        """
        n_groups = groups.forbidden.shape[1]
        sums = _sums(vectors, groups.own, n_groups)  # (groups, dim)
        sizes = torch.bincount(groups.own, minlength=n_groups).to(vectors.dtype)
        products = vectors @ sums.T  # (titles, groups)
        with_self = products.gather(1, groups.own.unsqueeze(1)).squeeze(1)
        itself = torch.linalg.vecdot(vectors, vectors)  # 1, or 0 for a title of which dropout left nothing
        others = sizes[groups.own] - 1
        if unit_means:
            squared = torch.linalg.vecdot(sums, sums)
            rest = (squared[groups.own] - 2 * with_self + itself).clamp(min=1e-6).sqrt()  # ‖S − v‖
            own, scores = (with_self - itself) / rest, products / squared.clamp(min=1e-12).sqrt()
        else:
            own, scores = (with_self - itself) / others.clamp(min=1), products / sizes
        return scores.scatter(1, groups.own.unsqueeze(1), own.unsqueeze(1)), others > 0


@dataclass(frozen=True, kw_only=True)
class LeaveOneOutSoftmax(_LeaveOneOut):
    """Cross-entropy of a title's own group against all groups of the batch."""

    name: Literal["leave_one_out_softmax"] = "leave_one_out_softmax"
    temperature: float = field(default=0.2, metadata={"description": "Divides the cosines; lower pulls harder", "gt": 0})

    def loss(self, vectors: Tensor, groups: Groups, parameters: Mapping[str, Tensor] = MappingProxyType({})) -> Tensor:
        """Mean over the titles that have company; zero (and no gradient) when none has."""
        scores, company = self.scores(vectors, groups, unit_means=True)
        logits = (scores / self.temperature).masked_fill(groups.forbidden, float("-inf"))
        each = F.cross_entropy(logits, groups.own, reduction="none") * self.temperature
        return _mean(each, company)


@dataclass(frozen=True, kw_only=True)
class LeaveOneOutHinge(_LeaveOneOut):
    """Margin ranking of a title's own group against the groups that come too near."""

    name: Literal["leave_one_out_hinge"] = "leave_one_out_hinge"
    margin: float = field(default=0.2, metadata={"description": "How much nearer its own group must be", "gt": 0, "le": 2})

    def loss(self, vectors: Tensor, groups: Groups, parameters: Mapping[str, Tensor] = MappingProxyType({})) -> Tensor:
        """Mean over the titles that have company of the mean over the groups that violate the margin."""
        scores, company = self.scores(vectors, groups, unit_means=False)
        own = scores.gather(1, groups.own.unsqueeze(1))
        excluded = groups.forbidden.scatter(1, groups.own.unsqueeze(1), True)
        violations = (self.margin - own + scores).clamp(min=0) * ~excluded
        each = violations.sum(1) / (violations > 0).sum(1).clamp(min=1)
        return _mean(each, company)


def _sums(vectors: Tensor, own: Tensor, groups: int) -> Tensor:
    """Sums of the groups' vectors, (groups, dim). A GPU's index_add adds in another order every time; its index_put sorts first."""
    zeros = vectors.new_zeros(groups, vectors.shape[1])
    return zeros.index_add(0, own, vectors) if vectors.device.type == "cpu" else zeros.index_put((own,), vectors, accumulate=True)


def _mean(each: Tensor, counted: Tensor) -> Tensor:
    return torch.where(counted, each, torch.zeros_like(each)).sum() / counted.sum().clamp(min=1)


