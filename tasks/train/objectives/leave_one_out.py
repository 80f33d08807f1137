"""Leave-one-out objectives: a title should be close to the other titles of its category."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np

from storage.arrays import Ragged
from storage.lazy import Tensor, functional, torch
from tasks.form import configurable, setting
from tasks.train.objectives.base import BaseObjective


class GroupPlan(NamedTuple):
    """Titles of one batch, with one category drawn for each title."""

    rows: np.ndarray  # int64 (titles,): rows of the titles in the corpus
    chosen: np.ndarray  # int32 (titles,): id of the category drawn for each title


class Groups(NamedTuple):
    """Groups of one batch. The titles for which the same category was drawn form a group."""

    group_ids: Tensor  # int64 (titles,): group of each title
    forbidden: Tensor  # bool (titles, groups): True for another group whose label the title has as well


@configurable
class _LeaveOneOut(BaseObjective):
    """Base class: a title should be close to the other titles of its category and far from other categories.

    An epoch shows every labelled training title once, under one of its labels drawn at random. The titles of
    a label are split into packs, and a batch consists of ``packs`` packs. The titles of a batch with the same
    drawn label are a group.

    The score of a title for a group is its mean dot product with the unit vectors of the group, without the
    title itself. With S_h the sum of the n_h vectors of group h, the score of title i is (v_i·S_g − v_i·v_i)
    / (n_g − 1) for its group g, and v_i·S_h / n_h for another group h. Groups whose label the title also has
    are excluded. The softmax divides each score by the length of the mean vector of the group, so that one
    temperature fits small and large groups; the hinge uses the score.
    """

    pack: int = setting(8, "Number of titles of one label that are drawn together (a pack)", ge=2)
    packs: int = setting(128, "Number of packs in a step, which has pack × packs titles", ge=2)

    def plan_epoch(self, rows: np.ndarray, labels: Ragged, rng: np.random.Generator) -> list[GroupPlan]:
        starts, lengths = labels.offsets[rows], labels.lengths[rows]
        drawn_labels = labels.values[starts + (rng.random(len(rows)) * lengths).astype(np.int64)]
        order = rng.permutation(len(rows))
        order = order[drawn_labels[order].argsort(kind="stable")]
        first = np.flatnonzero(np.diff(drawn_labels[order], prepend=-1))
        within_label = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order)))
        packs = np.split(order, np.flatnonzero(within_label % self.pack == 0)[1:])
        pack_numbers = np.split(rng.permutation(len(packs)), range(self.packs, len(packs), self.packs))
        batches = [np.concatenate([packs[number] for number in numbers]) for numbers in pack_numbers]
        return [GroupPlan(rows[batch], drawn_labels[batch]) for batch in batches]

    def collate(self, plan: GroupPlan, labels: Ragged, aired: np.ndarray) -> Groups:
        group_labels, group_ids = np.unique(plan.chosen, return_inverse=True)
        title_labels = labels.take(plan.rows)
        columns = np.searchsorted(group_labels, title_labels.values).clip(max=len(group_labels) - 1)
        in_batch = group_labels[columns] == title_labels.values
        is_forbidden = np.zeros((len(plan.rows), len(group_labels)), dtype=bool)
        is_forbidden[title_labels.row_ids[in_batch], columns[in_batch]] = True
        is_forbidden[np.arange(len(plan.rows)), group_ids] = False
        return Groups(torch.from_numpy(group_ids.astype(np.int64)), torch.from_numpy(is_forbidden))

    @staticmethod
    def scores(vectors: Tensor, groups: Groups, *, unit_means: bool) -> tuple[Tensor, Tensor]:
        from storage.tables.segment_sums import count_entries

        # Returns the scores (titles, groups) and which titles are not alone in their group. Autocast is off:
        # in small groups, the difference of bfloat16 products would have too few significant bits.
        with torch.autocast(vectors.device.type, enabled=False):
            vectors = vectors.to(torch.promote_types(vectors.dtype, torch.float32))
            n_groups, columns = groups.forbidden.shape[1], groups.group_ids.unsqueeze(1)
            sums = vectors.new_zeros(n_groups, vectors.shape[1])  # (groups, dim)
            if vectors.device.type == "cpu":
                sums = sums.index_add(0, groups.group_ids, vectors)
            else:  # on a GPU, index_add is not deterministic; index_put sorts first
                sums = sums.index_put((groups.group_ids,), vectors, accumulate=True)
            sizes = count_entries(groups.group_ids, n_groups).to(vectors.dtype)
            products = vectors @ sums.T  # (titles, groups)
            squares = torch.linalg.vecdot(vectors, vectors)  # 1, or 0 if dropout removed all tokens
            other_counts = sizes.index_select(0, groups.group_ids) - 1
            group_products = products.gather(1, columns).squeeze(1)
            other_products = group_products - squares  # v·(S − v)
            if unit_means:
                squared = torch.linalg.vecdot(sums, sums)
                # on a GPU, the backward pass of index_select is not deterministic; indexing sorts first
                group_squared = squared[groups.group_ids]
                length = (group_squared - 2 * group_products + squares).clamp(min=1e-6).sqrt()  # ‖S − v‖
                group_scores, scores = other_products / length, products / squared.clamp(min=1e-12).sqrt()
            else:
                group_scores, scores = other_products / other_counts.clamp(min=1), products / sizes
            return scores.scatter(1, columns, group_scores.unsqueeze(1)), other_counts > 0


@configurable
class LeaveOneOutSoftmax(_LeaveOneOut):
    """Objective: cross-entropy of the group of a title, by a softmax over the groups of the batch."""

    name: Literal["leave_one_out_softmax"] = "leave_one_out_softmax"
    temperature: float = setting(0.2, "Temperature; lower values give stronger gradients", gt=0)

    def loss(self, vectors: Tensor, groups: Groups, parameters: Mapping[str, Tensor] | None = None) -> Tensor:
        """Returns the mean loss over titles in groups of two or more; zero if there are none."""
        scores, has_group = self.scores(vectors, groups, unit_means=True)
        logits = (scores / self.temperature).masked_fill(groups.forbidden, float("-inf"))
        return _mean(
            functional.cross_entropy(logits, groups.group_ids, reduction="none") * self.temperature, has_group
        )


@configurable
class LeaveOneOutHinge(_LeaveOneOut):
    """Objective: margin ranking loss of the group of a title against the other groups of the batch."""

    name: Literal["leave_one_out_hinge"] = "leave_one_out_hinge"
    margin: float = setting(
        0.2, "Margin by which the score of a title's group must exceed that of other groups", gt=0, le=2
    )

    def loss(self, vectors: Tensor, groups: Groups, parameters: Mapping[str, Tensor] | None = None) -> Tensor:
        """Returns the mean loss over titles in groups of two or more.

        The loss of a title is the mean over the other groups that violate the margin.
        """
        scores, has_group = self.scores(vectors, groups, unit_means=False)
        columns = groups.group_ids.unsqueeze(1)
        is_excluded = groups.forbidden.scatter(1, columns, True)
        violations = (self.margin - scores.gather(1, columns) + scores).clamp(min=0) * ~is_excluded
        return _mean(violations.sum(1) / (violations > 0).sum(1).clamp(min=1), has_group)


def _mean(losses: Tensor, is_counted: Tensor) -> Tensor:
    return torch.where(is_counted, losses, torch.zeros_like(losses)).sum() / is_counted.sum().clamp(min=1)
