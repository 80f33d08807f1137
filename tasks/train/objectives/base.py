"""Base class of the training objectives."""

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
    """Base of the objectives: how batches are formed (sampler and collate) and their loss.

    ``loss(vectors, targets, parameters)`` receives unit vectors (titles, dim), the result of ``collate`` on
    the same device, and tensors of ``parameters`` and ``buffers`` by name. It may change buffers in place.
    """

    name: str

    def parameters(self, labels: int, dim: int) -> dict[str, tuple[int, int]]:
        """Returns the shapes of the trained parameters besides the token rows."""
        return {}

    def buffers(self, corpus: OpenCorpus, dim: int) -> dict[str, Tensor]:
        """Returns the initial state that is not trained by gradients; checkpoints contain it."""
        return {}

    def sampler(self, corpus: OpenCorpus, buffers: dict[str, Tensor]) -> Sampler:
        """Returns the sampler of batches; the objective itself if the sampler needs only labels."""
        return self  # pyright: ignore[reportReturnType]

    @property
    def refresh_steps(self) -> int:
        """Steps between calls of ``refresh_`` in an epoch; 0: one call at the start of the epoch."""
        return 0

    def refresh_(
        self, buffers: dict[str, Tensor], rows: np.ndarray, labels: Ragged, vectors: Callable[[], Tensor]
    ) -> None:
        """Updates the buffers before the batches of an epoch, or its remaining ones, are planned.

        Args:
            buffers: Buffers to update in place.
            rows: Corpus rows of the training titles, int64 (rows,).
            labels: Labels of all titles of the corpus.
            vectors: Returns the current vectors of ``rows``, float32 (rows, dim), on the CPU.
        """

    def details(self, folder: Path, buffers: dict[str, Tensor]) -> dict[str, Any]:
        """Returns a JSON summary of the buffers for the Checkpoint; ``folder`` is the Corpus folder."""
        return {}
