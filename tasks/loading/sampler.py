"""Defines the interface by which training objectives form batches."""

from typing import Any, Protocol

import numpy as np

from storage.arrays import Ragged


class Sampler(Protocol):
    """Part of a training objective that groups titles into batches."""

    def plan_epoch(self, rows: np.ndarray, labels: Ragged, rng: np.random.Generator) -> list[Any]:
        """Plans the batches of an epoch.

        Args:
            rows: Corpus rows of the titles in the epoch.
            labels: Label ids of all titles of the corpus.
            rng: Source of randomness.

        Returns:
            One plan per batch, with the attribute ``rows``: corpus rows of the titles in the batch.
        """
        ...

    def collate(self, plan: Any, labels: Ragged, aired: np.ndarray) -> Any:
        """Returns the data that the loss function needs for a batch.

        Args:
            plan: Plan of the batch.
            labels: Label ids of all titles of the corpus.
            aired: bool (titles,), whether a title in the batch has context tokens.
        """
        ...
