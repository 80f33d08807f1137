"""What objectives share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from storage.arrays import Ragged
from storage.formats.corpus import OpenCorpus
from tasks.form import configurable
from tasks.loading.loader import Sampler


@configurable
class BaseObjective:
    """Base of the objectives: what a batch is (sampler and collate) and its loss.

    ``loss(vectors, targets, parameters)`` gets unit vectors (titles, dim), what ``collate`` made of the batch
    on the same device, and the tensors of ``parameters`` and ``buffers`` by name; it may change buffers in
    place.
    """

    name: str

    def parameters(self, labels: int, dim: int) -> dict[str, tuple[int, int]]:
        """Shapes of what is learnt beside the token rows."""
        return {}

    def buffers(self, corpus: OpenCorpus, dim: int) -> dict[str, Tensor]:
        """State that no gradient changes, at the start; a checkpoint keeps it."""
        return {}

    def sampler(self, corpus: OpenCorpus, buffers: dict[str, Tensor]) -> Sampler:
        """What forms the batches; itself where the labels are all it needs."""
        return self  # pyright: ignore[reportReturnType]

    @property
    def refresh_steps(self) -> int:
        """Steps of an epoch between calls of ``refresh_``; 0: one call, at its start."""
        return 0

    def refresh_(
        self, buffers: dict[str, Tensor], rows: np.ndarray, labels: Ragged, vectors: Callable[[], Tensor]
    ) -> None:
        """Brings buffers up to date before the batches of an epoch, or the rest of them, are planned;
        ``vectors()`` are the learner's of ``rows``, the titles that are trained on: float32 (rows, dim), on
        the CPU.
        """

    def details(self, folder: Path, buffers: dict[str, Tensor]) -> dict[str, Any]:
        """What people are shown of the buffers, JSON for the Checkpoint; ``folder`` is the Corpus'."""
        return {}
