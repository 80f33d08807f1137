"""The batches of a run, for whoever steps."""

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
    """Loads batches of ``rows``, int64 (titles,), of a Corpus folder; ``buffers`` are the objective's."""
    return BatchLoader(
        folder,
        settings.objective.sampler(corpus, buffers),
        rows=rows,
        order=settings.order,
        dropout=settings.dropout,
        context_dropout=settings.context_dropout,
        encoder=settings.encoder,
        seed=settings.seed,
        workers=workers,
        pin=pin,
    )


def ids_of_a_batch(corpus: OpenCorpus, settings: TrainSettings, buffers: dict[str, Tensor]) -> Tensor:
    """Table ids of the first batch, rising."""
    loader = open_batches(corpus.folder, corpus, settings, corpus.training, buffers, workers=0)
    return next(loader.epoch(0)[1]).bags.ids
