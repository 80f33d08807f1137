"""Defines the interface and the defaults of all training objectives."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from storage.arrays import Ragged
from storage.formats.corpus import OpenCorpus
from storage.lazy import Tensor
from tasks.form import configurable
from tasks.loading.sampler import Sampler


@configurable
class BaseObjective:
    """Base class of the objectives. An objective defines the batches of titles and the loss of a batch.

    Subclasses implement ``loss(vectors, targets, parameters)``, which returns a scalar. ``vectors`` are unit
    vectors (titles, dim), ``targets`` is the result of ``collate``, and ``parameters`` contains the tensors
    of ``parameters`` and ``buffers`` by name. The function may change buffers in place.
    """

    name: str

    def parameters(self, labels: int, dim: int) -> dict[str, tuple[int, int]]:
        """Returns the shapes of the trained parameters other than the token rows, by name."""
        return {}

    def buffers(self, corpus: OpenCorpus, dim: int) -> dict[str, Tensor]:
        """Returns the initial buffers by name: tensors in checkpoints that are not trained by gradients."""
        return {}

    def sampler(self, corpus: OpenCorpus, buffers: dict[str, Tensor]) -> Sampler:
        """Returns the sampler of batches. By default, the objective has the methods of Sampler itself."""
        return self  # pyright: ignore[reportReturnType]

    def refresh_(
        self, buffers: dict[str, Tensor], rows: np.ndarray, labels: Ragged, vectors: Callable[[], Tensor]
    ) -> None:
        """Updates the buffers. Called at the start of an epoch.

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
