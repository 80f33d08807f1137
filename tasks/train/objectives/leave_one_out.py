"""Leave-one-out objectives: a title should be close to the other titles of its category in the batch."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np

from storage.arrays import Ragged
from storage.lazy import Tensor, functional, torch
from tasks.form import configurable, setting
from tasks.train.objectives.base import BaseObjective


class GroupPlan(NamedTuple):
    """Titles of a batch, with one category drawn for each title."""

    title_ids: np.ndarray  # int64 (titles,): ids (rows in the corpus) of the titles
    drawn_labels: np.ndarray  # int32 (titles,): id of the category drawn for each title


class Groups(NamedTuple):
    """Groups of a batch. The titles for which the same category was drawn form a group."""

    group_ids: Tensor  # int64 (titles,): group of each title
    excluded: Tensor  # bool (titles, groups): True for another group whose category the title also has


@configurable
class _LeaveOneOut(BaseObjective):
    """Base class: a title should be close to the other titles of its category and far from other categories.

    An epoch shows every labelled training title once, with one of its labels, which is drawn at random. The
    titles with the same drawn label are split into packs, and a batch consists of ``packs`` packs. The titles
    of a batch with the same drawn label are a group.

    The score of a title for a group is the mean dot product of its vector and those of the other titles of
    the group. If S_h is the sum of the n_h vectors of group h, the score of title i is (v_i·S_g − v_i·v_i) /
    (n_g − 1) for its group g, and v_i·S_h / n_h for another group h. Groups whose label the title also has
    are excluded. The softmax objective divides each score by the length of the mean vector of the group, so
    that the same temperature suits small and large groups. The hinge objective does not divide the scores.
    """

    pack: int = setting(
        8, "Number of titles of a pack; they have a label in common and are in the same batch", ge=2
    )
    packs: int = setting(128, "Number of packs in a batch, which has pack × packs titles", ge=2)

    def plan_epoch(self, title_ids: np.ndarray, labels: Ragged, rng: np.random.Generator) -> list[GroupPlan]:
        """Draws a label for each title, and splits the titles into packs and the packs into batches."""
        label_positions = (rng.random(len(title_ids)) * labels.lengths[title_ids]).astype(np.int64)
        drawn_labels = labels.values[labels.offsets[title_ids] + label_positions]
        order = rng.permutation(len(title_ids))
        order = order[drawn_labels[order].argsort(kind="stable")]
        starts = np.flatnonzero(np.diff(drawn_labels[order], prepend=-1))  # first title of each label
        position_in_label = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
        packs = np.split(order, np.flatnonzero(position_in_label % self.pack == 0)[1:])
        pack_numbers = np.split(rng.permutation(len(packs)), range(self.packs, len(packs), self.packs))
        batches = [np.concatenate([packs[number] for number in numbers]) for numbers in pack_numbers]
        return [GroupPlan(title_ids[batch], drawn_labels[batch]) for batch in batches]

    def collate(self, plan: GroupPlan, labels: Ragged, aired: np.ndarray) -> Groups:
        """Returns the groups of a batch."""
        group_labels, group_ids = np.unique(plan.drawn_labels, return_inverse=True)
        title_labels = labels.take(plan.title_ids)
        columns = np.searchsorted(group_labels, title_labels.values).clip(max=len(group_labels) - 1)
        in_batch = group_labels[columns] == title_labels.values
        is_excluded = np.zeros((len(plan.title_ids), len(group_labels)), dtype=bool)
        is_excluded[title_labels.row_ids[in_batch], columns[in_batch]] = True
        is_excluded[np.arange(len(plan.title_ids)), group_ids] = False
        return Groups(torch.from_numpy(group_ids.astype(np.int64)), torch.from_numpy(is_excluded))

    @staticmethod
    def scores(vectors: Tensor, groups: Groups, *, unit_means: bool) -> tuple[Tensor, Tensor]:
        """Returns the scores, (titles, groups), and whether the group of a title has other titles, (titles,).

        If ``unit_means`` is set, a score is divided by the length of the mean vector of the group.
        """
        from storage.tables.segment_sums import count_entries

        # Autocast is off, because the difference of bfloat16 products would have too few significant bits in
        # small groups.
        with torch.autocast(vectors.device.type, enabled=False):
            vectors = vectors.to(torch.promote_types(vectors.dtype, torch.float32))
            num_groups, columns = groups.excluded.shape[1], groups.group_ids.unsqueeze(1)
            group_sums = vectors.new_zeros(num_groups, vectors.shape[1])  # (groups, dim)
            if vectors.device.type == "cpu":
                group_sums = group_sums.index_add(0, groups.group_ids, vectors)
            else:  # on a GPU, index_add is not deterministic, but index_put is
                group_sums = group_sums.index_put((groups.group_ids,), vectors, accumulate=True)
            group_sizes = count_entries(groups.group_ids, num_groups).to(vectors.dtype)
            products = vectors @ group_sums.T  # (titles, groups)
            title_squares = torch.linalg.vecdot(vectors, vectors)  # 1, or 0 if dropout removed all tokens
            other_counts = group_sizes.index_select(0, groups.group_ids) - 1
            group_products = products.gather(1, columns).squeeze(1)
            other_products = group_products - title_squares  # v·(S − v)
            if unit_means:
                sum_squares = torch.linalg.vecdot(group_sums, group_sums)
                # on a GPU, the backward pass of index_select is not deterministic, but that of indexing is
                group_sum_squares = sum_squares[groups.group_ids]
                rest_squares = group_sum_squares - 2 * group_products + title_squares  # ‖S − v‖²
                group_scores = other_products / rest_squares.clamp(min=1e-6).sqrt()
                scores = products / sum_squares.clamp(min=1e-12).sqrt()
            else:
                group_scores = other_products / other_counts.clamp(min=1)
                scores = products / group_sizes
            return scores.scatter(1, columns, group_scores.unsqueeze(1)), other_counts > 0


@configurable
class LeaveOneOutSoftmax(_LeaveOneOut):
    """Objective: cross-entropy of the group of a title, by a softmax over the groups of the batch."""

    name: Literal["leave_one_out_softmax"] = "leave_one_out_softmax"
    temperature: float = setting(
        0.2, "Temperature of the softmax; lower values give stronger gradients", gt=0
    )

    def loss(self, vectors: Tensor, groups: Groups, parameters: Mapping[str, Tensor] | None = None) -> Tensor:
        """Returns the mean loss of the titles in groups of at least two titles; zero if there are none."""
        scores, is_counted = self.scores(vectors, groups, unit_means=True)
        logits = (scores / self.temperature).masked_fill(groups.excluded, float("-inf"))
        losses = functional.cross_entropy(logits, groups.group_ids, reduction="none") * self.temperature
        return _mean(losses, is_counted)


@configurable
class LeaveOneOutHinge(_LeaveOneOut):
    """Objective: margin ranking loss of the group of a title against the other groups of the batch."""

    name: Literal["leave_one_out_hinge"] = "leave_one_out_hinge"
    margin: float = setting(
        0.2,
        "Margin by which the score of the group of a title must exceed the scores of other groups",
        gt=0,
        le=2,
    )

    def loss(self, vectors: Tensor, groups: Groups, parameters: Mapping[str, Tensor] | None = None) -> Tensor:
        """Returns the mean loss of the titles in groups of at least two titles; zero if there are none.

        The loss of a title is the mean loss of the other groups that violate the margin.
        """
        scores, is_counted = self.scores(vectors, groups, unit_means=False)
        columns = groups.group_ids.unsqueeze(1)
        is_excluded = groups.excluded.scatter(1, columns, True)
        violations = (self.margin - scores.gather(1, columns) + scores).clamp(min=0) * ~is_excluded
        return _mean(violations.sum(1) / (violations > 0).sum(1).clamp(min=1), is_counted)


def _mean(losses: Tensor, is_counted: Tensor) -> Tensor:
    """Returns the mean of the losses that are counted; zero if there are none."""
    return torch.where(is_counted, losses, torch.zeros_like(losses)).sum() / is_counted.sum().clamp(min=1)
