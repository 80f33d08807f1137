"""Opens the loader of training batches, in the main process and in learner processes (runners/learner.py)."""

import numpy as np
from torch import Tensor

from storage.formats.corpus import OpenCorpus
from tasks.loading.loader import BatchLoader
from tasks.train.settings import TrainSettings


def open_batches(
    corpus: OpenCorpus,
    settings: TrainSettings,
    title_ids: np.ndarray,
    buffers: dict[str, Tensor],
    *,
    workers: int,
    pin: bool = False,
) -> BatchLoader:
    """Opens a loader of the batches of a training run.

    Args:
        corpus: The opened Corpus.
        settings: Settings of the run.
        title_ids: Ids (rows in the corpus) of the titles to load, int64 (titles,).
        buffers: Buffers of the objective, by name.
        workers: Number of loader processes; 0: this process loads the batches; -1: see train.workers.
        pin: Whether the loader copies batches to page-locked memory, from which copies to a GPU are faster.
    """
    return BatchLoader(
        corpus.folder,
        settings.objective.sampler(corpus, buffers),
        title_ids=title_ids,
        dropout=settings.dropout,
        context_dropout=settings.context_dropout,
        encoder=settings.encoder,
        seed=settings.seed,
        workers=workers,
        pin=pin,
    )


def first_batch_ids(corpus: OpenCorpus, settings: TrainSettings, buffers: dict[str, Tensor]) -> Tensor:
    """Returns the distinct token ids of the first training batch, int64 (any,), in ascending order."""
    loader = open_batches(corpus, settings, corpus.training, buffers, workers=0)
    return next(loader.epoch(0)[1]).bags.ids
