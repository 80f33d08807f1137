"""Label mode with a memory of rare events beside it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from storage.formats.corpus import OpenCorpus
from tasks.form import configurable, setting
from tasks.train.memory import EMPTY, HitOrMiss, Memory, Rule
from tasks.train.objectives.label import LabelMode, LabelTargets

PREFIX = "memory_"  # of the buffers: memory_keys, memory_values, …
TITLES = f"{PREFIX}titles"  # int64 (labels,): training titles of each label


@configurable
class RareMemory(LabelMode):
    """A title also belongs to the nearest memory slot of its category, more than to any other category's.

        loss = label mode + memory_weight · mean [ q·K[n_b] − q·K[n_p] + margin ]₊

    n_p is the nearest slot with the title's value, n_b the nearest with none of its categories, both as the
    memory was before the batch; no gradient goes into slots. Then the batch is written. A title that lacks
    either slot adds nothing. The value of a title is the rarest of its categories: it is for rare ones that
    slots are kept, and a title drawn under another each time would miss its own slot.

    References:
        Kaiser, Nachum, Roy, Bengio. Learning to Remember Rare Events. ICLR 2017, equation 2.
        https://arxiv.org/abs/1703.03129

    We differ: label mode trains beside it; titles are their own queries, without a learnt projection; the
    margin is 0.2, not 0.1 (docs/log).
    """

    name: Literal["rare_memory"] = "rare_memory"
    slots: int = setting(2048, "Slots of the memory", ge=1, le=1_048_576)
    memory_weight: float = setting(0.5, "Weight of the memory's loss beside label mode's", ge=0)
    margin: float = setting(0.2, "How much nearer its own category's slot must be", gt=0, le=2)
    rule: Rule = setting(HitOrMiss(), "How a title is written into the memory")

    def buffers(self, corpus: OpenCorpus, dim: int) -> dict[str, Tensor]:
        """An empty memory, and how many training titles each label has."""
        held = corpus.labels.take(corpus.training).values
        titles = torch.from_numpy(np.bincount(held, minlength=len(corpus.label_names)).astype(np.int64))
        memory = Memory.empty(self.slots, dim)
        return {TITLES: titles} | {f"{PREFIX}{name}": own for name, own in memory._asdict().items()}

    def loss(self, vectors: Tensor, targets: LabelTargets, parameters: Mapping[str, Tensor]) -> Tensor:
        """Label mode's loss of unit vectors (titles, dim) and the memory's; writes the titles into it."""
        loss = super().loss(vectors, targets, parameters)
        memory = Memory(*(parameters[f"{PREFIX}{name}"] for name in Memory._fields))
        queries, (values, others) = vectors.float(), rarest(targets, parameters[TITLES], len(vectors))
        known = torch.linalg.vector_norm(queries.detach(), dim=1) > 0.5  # dropout may leave nothing
        values = values.masked_fill(~known, EMPTY)
        found = memory.write_(queries, values, self.rule, others=others, label_count=len(parameters[TITLES]))
        counted = (found.same != EMPTY) & (found.other != EMPTY)
        away, towards = (found.start.index_select(0, own.clamp(min=0)) for own in (found.other, found.same))
        excess = (torch.linalg.vecdot(queries, away - towards) + self.margin).clamp(min=0)
        margins = torch.where(counted, excess, torch.zeros_like(excess)).sum() / counted.sum().clamp(min=1)
        return loss + self.memory_weight * margins

    def details(self, folder: Path, buffers: dict[str, Tensor]) -> dict[str, Any]:
        """``memory``: a dictionary for each label that has slots, most slots first; ``ages``, in titles
        written since, are the least, the quartiles and the greatest.
        """
        names = json.loads((folder / "label_names.json").read_text(encoding="utf-8"))
        own = (buffers[f"{PREFIX}{name}"].cpu().numpy() for name in ("values", "ages", "hits"))
        values, ages, hits = own
        counts, found = np.bincount(values[values != EMPTY], minlength=len(names)), []
        for label in np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)].tolist():
            held = values == label
            spread = np.percentile(ages[held], (0, 25, 50, 75, 100)).tolist()
            about = {"slots": int(counts[label]), "never_hit": int((hits[held] == 0).sum())}
            found.append({"label": names[label], **about, "ages": spread})
        return {"memory": found}


def rarest(targets: LabelTargets, titles: Tensor, count: int) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """The rarest label of each of ``count`` titles, the lowest of equal ones, int64 (titles,), and offsets,
    int64 (titles + 1,), and labels of its others; ``titles`` are the training titles of each label.
    """
    rank = titles.index_select(0, targets.labels) * len(titles) + targets.labels
    lowest = torch.full((count,), torch.iinfo(torch.int64).max, device=rank.device)
    lowest.scatter_reduce_(0, targets.titles, rank, "amin")
    other = rank != lowest.index_select(0, targets.titles)
    held = torch.bincount(targets.titles[other], minlength=count)
    offsets = torch.cat([held.new_zeros(1), held.cumsum(0)])
    return lowest % len(titles), (offsets, targets.labels[other])
