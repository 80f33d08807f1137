"""Defines the interface of a sampler, by which a training objective forms batches."""

from typing import Any, Protocol

import numpy as np

from storage.arrays import Ragged


class Sampler(Protocol):
    """Part of a training objective: groups titles into batches and creates the data for the loss function."""

    def plan_epoch(self, title_ids: np.ndarray, labels: Ragged, rng: np.random.Generator) -> list[Any]:
        """Plans the batches of an epoch.

        Args:
            title_ids: Ids (rows in the corpus) of the titles of the epoch, int64 (titles,).
            labels: Label ids of all titles of the corpus.
            rng: Random generator.

        Returns:
            A plan for each batch. Its attribute ``title_ids`` contains the ids of the titles in the batch.
        """
        ...

    def collate(self, plan: Any, labels: Ragged, aired: np.ndarray) -> Any:
        """Returns the data that the loss function needs for a batch.

        Args:
            plan: Plan of the batch.
            labels: Label ids of all titles of the corpus.
            aired: Whether each title of the batch is shown with context tokens, bool (titles,).
        """
        ...
