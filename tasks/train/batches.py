"""Opens the batches of a training run, in the main process and in learner processes (runners/learner.py)."""

from pathlib import Path

import numpy as np
from torch import Tensor

from storage.formats.corpus import OpenCorpus
from tasks.loading.loader import BatchLoader
from tasks.train.settings import TrainSettings


def open_batches(
    folder: Path,
    corpus: OpenCorpus,
    settings: TrainSettings,
    rows: np.ndarray,
    buffers: dict[str, Tensor],
    *,
    workers: int,
    pin: bool = False,
) -> BatchLoader:
    """Opens a loader of the batches of a training run.

    Args:
        folder: Folder of the Corpus.
        corpus: The opened Corpus.
        settings: Settings of the run.
        rows: Corpus rows of the titles to load, int64 (titles,).
        buffers: Buffers of the objective, by name.
        workers: Number of loader processes; 0: none, -1: depends on the number of titles.
        pin: Whether batches are in page-locked memory, from which copies to a GPU are faster.
    """
    return BatchLoader(
        folder,
        settings.objective.sampler(corpus, buffers),
        rows=rows,
        dropout=settings.dropout,
        context_dropout=settings.context_dropout,
        encoder=settings.encoder,
        seed=settings.seed,
        workers=workers,
        pin=pin,
    )


def first_batch_ids(corpus: OpenCorpus, settings: TrainSettings, buffers: dict[str, Tensor]) -> Tensor:
    """Returns the distinct token ids of the first batch, int64, in ascending order."""
    loader = open_batches(corpus.folder, corpus, settings, corpus.training, buffers, workers=0)
    return next(loader.epoch(0)[1]).bags.ids
