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

PREFIX = "memory_"  # prefix of the names of buffers: memory_keys, memory_values, …
TITLES = f"{PREFIX}titles"  # int64 (labels,): number of training titles of each label


@configurable
class RareMemory(LabelMode):
    """Objective: label loss plus a margin loss on the nearest slots of a key-value memory.

        loss = label loss + memory_weight · mean [ q·K[n_b] − q·K[n_p] + margin ]₊

    A slot has a key K, a unit vector, and a value, a category. The query q is the vector of a title, and its
    value is the rarest category of the title. n_p is the nearest slot with this value, and n_b is the nearest
    slot with a category that the title does not have, both before the batch is written. The loss is zero if
    the slot with the right category is nearer by the margin, and for titles without n_p or n_b. Slots get no
    gradient.

    References: Kaiser, Nachum, Roy, Bengio. Learning to Remember Rare Events. ICLR 2017, equation 2.
        https://arxiv.org/abs/1703.03129

    We differ: the label loss is added, queries have no trained projection, and the margin is 0.2, not 0.1.
    """

    name: Literal["rare_memory"] = "rare_memory"
    slots: int = setting(2048, "Slots of the memory", ge=1, le=1_048_576)
    memory_weight: float = setting(0.5, "Weight of the memory loss relative to the label loss", ge=0)
    margin: float = setting(
        0.2, "Margin by which a slot of the title's category must be closer than others", gt=0, le=2
    )
    rule: Rule = setting(HitOrMiss(), "Which slot of the memory a title is written to")

    def buffers(self, corpus: OpenCorpus, dim: int) -> dict[str, Tensor]:
        """Returns an empty memory and the number of training titles of each label."""
        if not has_numba():
            raise ValueError(
                "train.objective is rare_memory, which needs numba, but it is not installed; install "
                "it, or choose label"
            )
        labels = corpus.labels.take(corpus.training).values
        titles = torch.from_numpy(np.bincount(labels, minlength=len(corpus.label_names)).astype(np.int64))
        memory = Memory.empty(self.slots, dim)
        return {TITLES: titles} | {f"{PREFIX}{name}": tensor for name, tensor in memory._asdict().items()}

    def loss(self, vectors: Tensor, targets: LabelTargets, parameters: Mapping[str, Tensor]) -> Tensor:
        """Returns the loss of unit vectors (titles, dim), and writes the vectors to the memory."""
        loss = super().loss(vectors, targets, parameters)
        memory = Memory(*(parameters[f"{PREFIX}{name}"] for name in Memory._fields))
        queries, (values, other_labels) = (
            vectors.float(),
            split_rarest_label(targets, parameters[TITLES], len(vectors)),
        )
        # A query is zero if dropout removed all tokens; it is not written.
        is_nonzero = torch.linalg.vector_norm(queries.detach(), dim=1) > 0.5
        values = values.masked_fill(~is_nonzero, EMPTY)
        label_count = len(parameters[TITLES])
        nearest_same, nearest_other, _, keys = memory.write_(
            queries, values, self.rule, others=other_labels, label_count=label_count
        )
        has_both = (nearest_same != EMPTY) & (nearest_other != EMPTY)
        other_keys = keys.index_select(0, nearest_other.clamp(min=0))
        difference = other_keys - keys.index_select(0, nearest_same.clamp(min=0))
        excess = (torch.linalg.vecdot(queries, difference) + self.margin).clamp(min=0)
        margins = torch.where(has_both, excess, torch.zeros_like(excess)).sum() / has_both.sum().clamp(min=1)
        return loss + self.memory_weight * margins

    def details(self, folder: Path, buffers: dict[str, Tensor]) -> dict[str, Any]:
        """Returns {"memory": [...]} with a dictionary for each label that has slots, most slots first.

        ``ages`` are the minimum, quartiles and maximum of the ages of the label's slots. The age of a slot is
        the number of titles written since the slot was written.
        """
        names = json.loads((folder / "label_names.json").read_text(encoding="utf-8"))
        keys = (f"{PREFIX}{name}" for name in ("values", "ages", "hits"))
        values, ages, hits = (buffers[name].cpu().numpy() for name in keys)
        counts, details = np.bincount(values[values != EMPTY], minlength=len(names)), []
        for label in np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)].tolist():
            of_label = values == label
            percentiles = np.percentile(ages[of_label], (0, 25, 50, 75, 100)).tolist()
            slot_counts = {"slots": int(counts[label]), "never_hit": int((hits[of_label] == 0).sum())}
            details.append({"label": names[label], **slot_counts, "ages": percentiles})
        return {"memory": details}


def split_rarest_label(
    targets: LabelTargets, titles: Tensor, count: int
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Returns the rarest label of each title of a batch, and its other labels.

    Args:
        targets: Labels of the titles.
        titles: Number of training titles of each label, int64 (labels,).
        count: Number of titles in the batch.

    Returns:
        Rarest labels (in a tie, the lowest id), int64 (titles,); other labels: offsets, int64 (titles + 1,),
            and ids.
    """
    rank = titles.index_select(0, targets.labels) * len(titles) + targets.labels
    lowest_rank = torch.full((count,), torch.iinfo(torch.int64).max, device=rank.device)
    lowest_rank.scatter_reduce_(0, targets.titles, rank, "amin")
    is_other = rank != lowest_rank.index_select(0, targets.titles)
    other_counts = torch.bincount(targets.titles[is_other], minlength=count)
    offsets = torch.cat([other_counts.new_zeros(1), other_counts.cumsum(0)])
    return lowest_rank % len(titles), (offsets, targets.labels[is_other])
