"""Defines the interface and the defaults of all training objectives."""

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
    """Base class of the objectives, which define how batches are formed (sampler and collate) and their loss.

    Subclasses implement ``loss(vectors, targets, parameters)``. It receives unit vectors (titles, dim), the
    result of ``collate`` on the same device, and the tensors of ``parameters`` and ``buffers`` by name. It
    returns a scalar and may change buffers in place.
    """

    name: str

    def parameters(self, labels: int, dim: int) -> dict[str, tuple[int, int]]:
        """Returns the shapes of the trained parameters other than the token rows, by name."""
        return {}

    def buffers(self, corpus: OpenCorpus, dim: int) -> dict[str, Tensor]:
        """Returns initial tensors, by name, that are not trained by gradients; checkpoints contain them."""
        return {}

    def sampler(self, corpus: OpenCorpus, buffers: dict[str, Tensor]) -> Sampler:
        """Returns the sampler of batches: by default the objective, which has the methods of Sampler."""
        return self  # pyright: ignore[reportReturnType]

    @property
    def refresh_steps(self) -> int:
        """Steps between calls of ``refresh_`` in an epoch; 0: one call at the start of the epoch."""
        return 0

    def refresh_(
        self, buffers: dict[str, Tensor], rows: np.ndarray, labels: Ragged, vectors: Callable[[], Tensor]
    ) -> None:
        """Updates the buffers at the start of an epoch and every ``refresh_steps`` steps, before batches are
        planned.

        Args:
            buffers: Buffers to update in place.
            rows: Corpus rows of the training titles, int64 (rows,).
            labels: Labels of all titles of the corpus.
            vectors: Returns the current vectors of ``rows``, float32 (rows, dim), on the CPU.
        """

    def details(self, folder: Path, buffers: dict[str, Tensor]) -> dict[str, Any]:
        """Returns a JSON summary of the buffers, which is stored with the Checkpoint.

        ``folder`` is the folder of the Corpus, which contains the names of tokens and titles.
        """
        return {}
