"""Defines the base class of all training objectives."""

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
    """Base class of the objectives. An objective defines how titles form batches, and the loss of a batch.

    Subclasses implement ``loss(vectors, targets, parameters)``, which returns a scalar. ``vectors`` are the
    unit vectors of the titles of a batch, (titles, dim). ``targets`` is the result of ``collate`` for the
    batch. ``parameters`` contains the trained parameters and the buffers by name; the loss may change buffers
    in place.
    """

    name: str

    def parameters(self, labels: int, dim: int) -> dict[str, tuple[int, int]]:
        """Returns the shapes of the trained parameters of the objective, by name.

        ``labels`` is the number of labels, and ``dim`` is the number of dimensions of a title vector.
        """
        return {}

    def buffers(self, corpus: OpenCorpus, dim: int) -> dict[str, Tensor]:
        """Returns the initial buffers, by name. Buffers are stored in checkpoints, but get no gradient."""
        return {}

    def sampler(self, corpus: OpenCorpus, buffers: dict[str, Tensor]) -> Sampler:
        """Returns the sampler of batches. By default, the objective is the sampler."""
        return self  # pyright: ignore[reportReturnType]

    def refresh_(
        self, buffers: dict[str, Tensor], title_ids: np.ndarray, labels: Ragged, vectors: Callable[[], Tensor]
    ) -> None:
        """Updates the buffers at the start of an epoch.

        Args:
            buffers: Buffers to update in place, by name.
            title_ids: Ids (rows in the corpus) of the training titles, int64 (titles,).
            labels: Label ids of all titles of the corpus.
            vectors: Returns the current vectors of the training titles, float32 (titles, dim), on the CPU.
        """

    def details(self, folder: Path, buffers: dict[str, Tensor]) -> dict[str, Any]:
        """Returns a summary of the buffers as JSON, which is stored in the details of the Checkpoint.

        ``folder`` is the folder of the Corpus, which contains the names of tokens and titles.
        """
        return {}
