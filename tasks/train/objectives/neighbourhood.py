"""Titles against the titles of their own topic, and no others of their class."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from storage.arrays import Ragged
from storage.formats.corpus import OpenCorpus
from tasks.form import configurable, setting
from tasks.train.objectives.base import BaseObjective
from tasks.train.objectives.label import FEWEST, STEPS
from tasks.train.objectives.positives import Draw, Nearest, Positives


class NeighbourhoodPlan(NamedTuple):
    """The titles of a batch."""

    rows: np.ndarray  # int64 (2 anchors,): corpus rows of the anchors, then of the positive of each


class NeighbourhoodTargets(NamedTuple):
    """Which categories the titles of a batch have."""

    members: Tensor  # float32 (2 anchors, labels of the batch): 1 for a title's own


@configurable
class Neighbourhood(BaseObjective):
    """An anchor is nearer to its positive than to any title of other classes, by a margin.

        loss = mean_a mean_n [m − cos(a, p) + cos(a, n)]₊

    n is any title of the batch that shares no category with a and violates the margin. Other titles of a's
    class are neither drawn in nor pushed away, so that two tastes of one class need not lie in one corner.
    After Schroff et al. FaceNet. CVPR 2015. https://arxiv.org/abs/1503.03832, equation 3. We differ: cosines;
    all negatives of the batch that violate the margin (Hermans et al. In Defense of the Triplet Loss. 2017.
    https://arxiv.org/abs/1703.07737, section 2), averaged for each anchor first: the mean over all pairs
    together was worse (docs/log).

    An epoch shows every labelled training title once as anchor, and as many positives beside them.
    """

    name: Literal["neighbourhood"] = "neighbourhood"
    batch_size: int = setting(512, "Anchors in a step, fewer where an epoch would have too few steps", ge=2)
    margin: float = setting(
        0.2, "How much nearer the positive must be than titles of other classes", gt=0, le=2
    )
    positives: Positives = setting(Nearest(), "Where the positive of an anchor comes from")

    def buffers(self, corpus: OpenCorpus, dim: int) -> dict[str, Tensor]:
        """What the choice of positives needs."""
        return self.positives.buffers(corpus)

    def sampler(self, corpus: OpenCorpus, buffers: dict[str, Tensor]) -> "NeighbourhoodSampler":
        """What forms the batches."""
        return NeighbourhoodSampler(self.batch_size, self.positives.draw(corpus, buffers))

    @property
    def refresh_steps(self) -> int:
        """Steps between looking for positives anew."""
        return self.positives.refresh_steps

    def refresh_(
        self, buffers: dict[str, Tensor], rows: np.ndarray, labels: Ragged, vectors: Callable[[], Tensor]
    ) -> None:
        """Brings the choice of positives up to date."""
        self.positives.refresh_(buffers, rows, labels, vectors)

    def details(self, folder: Path, buffers: dict[str, Tensor]) -> dict[str, Any]:
        """The topics, where there are some."""
        return self.positives.details(folder, buffers)

    def loss(
        self,
        vectors: Tensor,
        targets: NeighbourhoodTargets,
        parameters: Mapping[str, Tensor] | None = None,
    ) -> Tensor:
        """Over unit vectors (2 anchors, dim); zero, and no gradient, where nothing violates the margin."""
        anchors = len(vectors) // 2
        apart = targets.members[:anchors] @ targets.members.T == 0  # (anchors, titles)
        near = torch.linalg.vecdot(vectors[:anchors], vectors[anchors:]).unsqueeze(1)
        far = (vectors[:anchors] @ vectors.T).to(vectors.dtype)
        violations = (self.margin - near + far).clamp(min=0) * apart
        return (violations.sum(1) / (violations > 0).sum(1).clamp(min=1)).mean()


@dataclass
class NeighbourhoodSampler:
    """Forms the batches; pickled for workers, which collate alone, it holds no arrays."""

    batch_size: int
    draw: Draw | None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "draw": None}

    def plan_epoch(
        self, rows: np.ndarray, labels: Ragged, rng: np.random.Generator
    ) -> list[NeighbourhoodPlan]:
        """The batches of one epoch: every title once as anchor, in a new order; STEPS of FEWEST at least."""
        assert self.draw
        anchors = rng.permutation(rows)
        size = min(self.batch_size, max(FEWEST, len(rows) // STEPS))
        pairs = np.stack([anchors, self.draw(anchors, rng)])
        parts = np.split(pairs, range(size, len(rows), size), axis=1)
        return [NeighbourhoodPlan(part.reshape(-1)) for part in parts]

    def collate(self, plan: NeighbourhoodPlan, labels: Ragged, aired: np.ndarray) -> NeighbourhoodTargets:
        """The categories of a batch."""
        own = labels.take(plan.rows)
        names, columns = np.unique(own.values, return_inverse=True)
        members = Ragged(own.offsets, columns).members(len(names))
        return NeighbourhoodTargets(torch.from_numpy(members.astype(np.float32)))
