"""Label objective: the vector of a title should be close to the trained vectors of its categories."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np

from storage.arrays import Ragged
from storage.lazy import Tensor, torch
from tasks.form import configurable, setting
from tasks.train.objectives.base import BaseObjective

# Small guides use smaller batches, because few steps do not train the sentence layer (docs/log).
MIN_STEPS, MIN_TITLES = 16, 64  # minimum number of steps in an epoch, and of titles in a batch


def batch_starts(title_count: int, batch_size: int) -> range:
    """Returns the first position of each batch but the first. Batches are smaller if there are few titles."""
    size = min(batch_size, max(MIN_TITLES, title_count // MIN_STEPS))
    return range(size, title_count, size)


class LabelPlan(NamedTuple):
    """Titles of a batch."""

    title_ids: np.ndarray  # int64 (titles,): ids (rows in the corpus) of the titles


class LabelTargets(NamedTuple):
    """Categories of the titles of a batch. An entry is a pair of a title and one of its categories."""

    titles: Tensor  # int64 (entries,): position of the title in the batch, ascending
    labels: Tensor  # int64 (entries,): label id of the category
    shares: Tensor  # float32 (entries,): 1 / number of categories of the title
    aired: Tensor  # bool (titles,): whether the title has context tokens


@configurable
class LabelMode(BaseObjective):
    """Base class: cross-entropy of the categories of a title, by cosines with trained category vectors L_c.

        loss = −τ · Σ_c t_c · log softmax_c( cos(v, L_c) / τ )

    v is the vector of the title. t_c is 1 / (number of categories of the title) for the categories of the
    title, and 0 for all others. The temperature τ is lower for titles with context tokens, because context
    tokens are more informative.

    References: Wu et al. StarSpace. AAAI 2018. https://arxiv.org/abs/1709.03856

    We differ: a softmax over all categories instead of a margin over sampled categories.
    """

    batch_size: int = setting(
        512, "Number of titles in a step; smaller if an epoch would have fewer than 16 steps", ge=1
    )
    temperature: float = setting(
        0.4, "Temperature τ of titles without context tokens; lower values give stronger gradients", gt=0
    )
    context_temperature: float = setting(0.2, "Temperature τ of titles with context tokens", gt=0)

    def parameters(self, labels: int, dim: int) -> dict[str, tuple[int, int]]:
        """Returns the shape of the trained category vectors."""
        return {"labels": (labels, dim)}

    def plan_epoch(self, title_ids: np.ndarray, labels: Ragged, rng: np.random.Generator) -> list[LabelPlan]:
        """Shuffles the titles and splits them into batches. Batches are smaller if there are few titles."""
        batches = np.split(rng.permutation(title_ids), batch_starts(len(title_ids), self.batch_size))
        return [LabelPlan(batch) for batch in batches]

    def collate(self, plan: LabelPlan, labels: Ragged, aired: np.ndarray) -> LabelTargets:
        """Returns the categories of the titles of a batch, with equal shares of the categories of a title."""
        entries = labels.take(plan.title_ids)
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
        from tasks.train.objectives.cross_entropy import CrossEntropy

        temperatures = vectors.new_full((len(vectors),), self.temperature)
        temperatures.masked_fill_(targets.aired, self.context_temperature)
        return CrossEntropy.apply(vectors, parameters["labels"], targets, temperatures)


@configurable
class Label(LabelMode):
    """Objective: the vector of a title should be close to the trained vectors of its categories."""

    name: Literal["label"] = "label"
