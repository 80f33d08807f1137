"""Label objective with an additional key-value memory for titles of rare categories."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from storage.formats.corpus import OpenCorpus
from storage.lazy import Tensor, torch
from tasks.compiled import has_numba
from tasks.form import configurable, setting
from tasks.train.memory import EMPTY, HitOrMiss, Memory, Rule
from tasks.train.objectives.label import LabelMode, LabelTargets

BUFFER_PREFIX = "memory_"  # prefix of the names of buffers: memory_keys, memory_values, …
LABEL_COUNTS = f"{BUFFER_PREFIX}titles"  # buffer, int64 (labels,): number of training titles of each label


@configurable
class RareMemory(LabelMode):
    """Objective: the label loss plus a margin loss on the nearest slots of a key-value memory.

        loss = label loss + memory_weight · mean [ q·K[n_b] − q·K[n_p] + margin ]₊

    A slot has a key K, which is a unit vector, and a value, which is a category. The query q is the vector of
    a title, and its value is the rarest category of the title. n_p is the nearest slot with this category,
    and n_b is the nearest slot with a category that the title does not have, both before the batch is
    written. The margin loss is zero if n_p is nearer than n_b by the margin, or if n_p or n_b does not exist.
    Keys get no gradient.

    References: Kaiser, Nachum, Roy, Bengio. Learning to Remember Rare Events. ICLR 2017, equation 2.
        https://arxiv.org/abs/1703.03129

    We differ: the label loss is added, queries have no trained projection, and the margin is 0.2, not 0.1.
    """

    name: Literal["rare_memory"] = "rare_memory"
    slots: int = setting(2048, "Number of slots of the memory", ge=1, le=1_048_576)
    memory_weight: float = setting(0.5, "Weight of the memory loss relative to the label loss", ge=0)
    margin: float = setting(
        0.2,
        "Margin by which the nearest slot of the category of a title must be closer than other slots",
        gt=0,
        le=2,
    )
    rule: Rule = setting(HitOrMiss(), "How the slot is selected to which a title is written")

    def buffers(self, corpus: OpenCorpus, dim: int) -> dict[str, Tensor]:
        """Returns an empty memory and the number of training titles of each label."""
        if not has_numba():
            raise ValueError(
                "train.objective is rare_memory, which needs numba, but it is not installed; install "
                "it, or choose label"
            )
        labels = corpus.labels.take(corpus.training).values
        label_counts = np.bincount(labels, minlength=len(corpus.label_names)).astype(np.int64)
        memory = Memory.empty(self.slots, dim)._asdict()
        buffers = {f"{BUFFER_PREFIX}{name}": tensor for name, tensor in memory.items()}
        return {LABEL_COUNTS: torch.from_numpy(label_counts)} | buffers

    def loss(self, vectors: Tensor, targets: LabelTargets, parameters: Mapping[str, Tensor]) -> Tensor:
        """Returns the mean loss of unit vectors (titles, dim), and writes the vectors to the memory."""
        label_loss, label_counts = super().loss(vectors, targets, parameters), parameters[LABEL_COUNTS]
        memory = Memory(*(parameters[f"{BUFFER_PREFIX}{name}"] for name in Memory._fields))
        queries = vectors.float()
        labels, other_labels = split_rarest_label(targets, label_counts, len(vectors))
        # A query is zero if dropout removed all tokens of the title. It is not written.
        is_nonzero = torch.linalg.vector_norm(queries.detach(), dim=1) > 0.5
        labels = labels.masked_fill(~is_nonzero, EMPTY)
        write_result = memory.write_(
            queries, labels, self.rule, other_labels=other_labels, label_count=len(label_counts)
        )
        has_both = (write_result.same_label_slots != EMPTY) & (write_result.other_label_slots != EMPTY)
        same_label_keys, other_label_keys = (
            write_result.keys_before.index_select(0, slots.clamp(min=0))
            for slots in (write_result.same_label_slots, write_result.other_label_slots)
        )
        cosine_differences = torch.linalg.vecdot(queries, other_label_keys - same_label_keys)
        losses = torch.where(has_both, (cosine_differences + self.margin).clamp(min=0), 0.0)
        return label_loss + self.memory_weight * (losses.sum() / has_both.sum().clamp(min=1))

    def details(self, folder: Path, buffers: dict[str, Tensor]) -> dict[str, Any]:
        """Returns {"memory": [...]} with a dictionary for each label that has slots, most slots first.

        ``ages`` are the minimum, the quartiles and the maximum of the ages of the slots of a label. The age
        of a slot is the number of titles that were written after the slot.
        """
        names = json.loads((folder / "label_names.json").read_text(encoding="utf-8"))
        buffer_names = (f"{BUFFER_PREFIX}{name}" for name in ("values", "ages", "hits"))
        values, ages, hits = (buffers[name].cpu().numpy() for name in buffer_names)
        slot_counts, details = np.bincount(values[values != EMPTY], minlength=len(names)), []
        for label in np.argsort(-slot_counts, kind="stable")[: np.count_nonzero(slot_counts)].tolist():
            has_label = values == label
            details.append(
                {
                    "label": names[label],
                    "slots": int(slot_counts[label]),
                    "never_hit": int((hits[has_label] == 0).sum()),
                    "ages": np.percentile(ages[has_label], (0, 25, 50, 75, 100)).tolist(),
                }
            )
        return {"memory": details}


def split_rarest_label(
    targets: LabelTargets, label_counts: Tensor, title_count: int
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Splits the labels of each title of a batch into the rarest label and the other labels.

    Args:
        targets: Labels of the titles.
        label_counts: Number of training titles of each label, int64 (labels,).
        title_count: Number of titles in the batch.

    Returns:
        The rarest label of each title, int64 (titles,), which is the lowest id if several are equally rare;
        the other labels of each title, as offsets, int64 (titles + 1,), and label ids.
    """
    num_labels = len(label_counts)
    rarity_ranks = label_counts.index_select(0, targets.labels) * num_labels + targets.labels
    lowest_ranks = torch.full((title_count,), torch.iinfo(torch.int64).max, device=rarity_ranks.device)
    lowest_ranks.scatter_reduce_(0, targets.titles, rarity_ranks, "amin")
    is_other = rarity_ranks != lowest_ranks.index_select(0, targets.titles)
    other_counts = torch.bincount(targets.titles[is_other], minlength=title_count)
    offsets = torch.cat([other_counts.new_zeros(1), other_counts.cumsum(0)])
    return lowest_ranks % num_labels, (offsets, targets.labels[is_other])
