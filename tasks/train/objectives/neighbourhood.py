"""Triplet objective: a title should be closer to a similar title than to titles of other categories."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from storage.arrays import Ragged
from storage.formats.corpus import OpenCorpus
from storage.lazy import Tensor, torch
from tasks.form import configurable, setting
from tasks.train.objectives.base import BaseObjective
from tasks.train.objectives.label import batch_starts
from tasks.train.objectives.positives import Draw, Nearest, Positives


class NeighbourhoodPlan(NamedTuple):
    """Titles of a batch: anchors and their positives. An anchor should be close to its positive."""

    title_ids: np.ndarray  # int64 (2 · anchors,): ids of the anchors, then of their positives


class NeighbourhoodTargets(NamedTuple):
    """Categories of the titles of a batch."""

    members: Tensor  # float32 (2 · anchors, labels of the batch): 1 if the title has the label, else 0


@configurable
class Neighbourhood(BaseObjective):
    """Objective: triplet loss. A title (the anchor) should be closer to its positive than to its negatives.

        loss = mean_a mean_n [m − cos(a, p) + cos(a, n)]₊

    a is an anchor, p is its positive, and m is the margin. The negatives n are the titles of the batch that
    have no category in common with a and violate the margin. An anchor is not attracted to other titles of
    its category, so a category may form several clusters. An epoch shows every labelled training title once
    as an anchor, together with its positive.

    References:
        Schroff et al. FaceNet. CVPR 2015. https://arxiv.org/abs/1503.03832, equation 3.
        Hermans et al. In Defense of the Triplet Loss. 2017. https://arxiv.org/abs/1703.07737, section 2.

    We differ: the loss has cosines instead of distances. It is the mean over anchors of the mean over their
    negatives, because the mean over all pairs of an anchor and a negative gave worse vectors.
    """

    name: Literal["neighbourhood"] = "neighbourhood"
    batch_size: int = setting(
        512, "Number of anchors in a step; smaller if an epoch would have fewer than 16 steps", ge=2
    )
    margin: float = setting(
        0.2, "Margin by which the positive must be closer than titles of other categories", gt=0, le=2
    )
    positives: Positives = setting(
        Nearest(), "How the positive of an anchor is drawn, which is a title that should be close to it"
    )

    def buffers(self, corpus: OpenCorpus, dim: int) -> dict[str, Tensor]:
        """Returns the buffers of the strategy that draws positives (positives.py)."""
        return self.positives.buffers(corpus)

    def sampler(self, corpus: OpenCorpus, buffers: dict[str, Tensor]) -> "NeighbourhoodSampler":
        """Returns a sampler of batches, which draws a positive for each anchor."""
        return NeighbourhoodSampler(self.batch_size, self.positives.draw(corpus, buffers))

    def refresh_(
        self, buffers: dict[str, Tensor], title_ids: np.ndarray, labels: Ragged, vectors: Callable[[], Tensor]
    ) -> None:
        """Updates the buffers of the strategy that draws positives."""
        self.positives.refresh_(buffers, title_ids, labels, vectors)

    def details(self, folder: Path, buffers: dict[str, Tensor]) -> dict[str, Any]:
        """Returns a summary of the topics of titles, if positives are drawn by topic."""
        return self.positives.details(folder, buffers)

    def loss(
        self,
        vectors: Tensor,
        targets: NeighbourhoodTargets,
        parameters: Mapping[str, Tensor] | None = None,
    ) -> Tensor:
        """Returns the mean loss of unit vectors (2 · anchors, dim); zero if no title violates the margin."""
        anchors = len(vectors) // 2
        is_negative = targets.members[:anchors] @ targets.members.T == 0  # (anchors, titles)
        positive_cosines = torch.linalg.vecdot(vectors[:anchors], vectors[anchors:]).unsqueeze(1)
        cosines = (vectors[:anchors] @ vectors.T).to(vectors.dtype)
        violations = (self.margin - positive_cosines + cosines).clamp(min=0) * is_negative
        return (violations.sum(1) / (violations > 0).sum(1).clamp(min=1)).mean()


@dataclass
class NeighbourhoodSampler:
    """Plans the batches of an epoch in the main process, and collates them in loader processes.

    A pickled copy, as in loader processes, has no function ``draw``, because only the main process plans.
    """

    batch_size: int
    draw: Draw | None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "draw": None}

    def plan_epoch(
        self, title_ids: np.ndarray, labels: Ragged, rng: np.random.Generator
    ) -> list[NeighbourhoodPlan]:
        """Shuffles the anchors and splits them into batches. Batches are smaller if there are few anchors."""
        assert self.draw
        anchors = rng.permutation(title_ids)
        pairs = np.stack([anchors, self.draw(anchors, rng)])
        batches = np.split(pairs, batch_starts(len(title_ids), self.batch_size), axis=1)
        return [NeighbourhoodPlan(batch.reshape(-1)) for batch in batches]

    def collate(self, plan: NeighbourhoodPlan, labels: Ragged, aired: np.ndarray) -> NeighbourhoodTargets:
        """Returns the categories of the titles of a batch."""
        title_labels = labels.take(plan.title_ids)
        batch_labels, columns = np.unique(title_labels.values, return_inverse=True)
        members = Ragged(title_labels.offsets, columns).multi_hot(len(batch_labels))
        return NeighbourhoodTargets(torch.from_numpy(members.astype(np.float32)))
