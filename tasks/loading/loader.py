"""Loads training batches from a Corpus, in this process or in worker processes.

Random numbers depend on (seed, epoch, batch number) only. Therefore, batches do not depend on the number of
worker processes, and a training that is resumed at any batch sees the same batches as an uninterrupted one.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from storage.cores import cores
from storage.formats.corpus import OpenCorpus, open_corpus
from tasks.encoder import Bag, Encoder
from tasks.encoder.bags import Bagger, Bags
from tasks.loading.delivery import Delivery
from tasks.loading.sampler import Sampler
from tasks.pool_settings import AUTOMATIC
from tasks.text.words import CONTEXT

DEFAULT_ENCODER = Bag()
MAX_MEMORY_SHARE = 0.5  # share of free memory for the corpus; rows and optimizer state need the rest
MAX_WORKERS = 4  # more worker processes load batches faster than training uses them


class Batch(NamedTuple):
    """Titles of a training step, and the data that the loss function needs."""

    bags: Bags  # tokens and sentence features of the titles
    targets: Any  # data for the loss function, from Sampler.collate


@dataclass
class _Batches:
    """Creates batches from (epoch, batch number, plan). A pickled instance does not contain the corpus."""

    folder: Path
    sampler: Sampler
    encoder: Encoder
    dropout: float
    context_dropout: float
    seed: int
    _opened: tuple[OpenCorpus, Bagger] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    def __getitem__(self, epoch_number_plan: tuple[int, int, Any]) -> Batch:
        epoch, number, plan = epoch_number_plan
        if self._opened is None:
            corpus = open_corpus(self.folder)
            self._opened = corpus, Bagger(corpus.kinds)
        corpus, bagger = self._opened
        ids = plan.title_ids
        tokens = corpus.tokens.take(ids)
        rng = np.random.default_rng([self.seed, epoch, number])
        has_context = bagger.kinds.max(initial=0) >= CONTEXT
        is_kept, shows_context = None, np.zeros(len(tokens), dtype=bool)
        if self.dropout or has_context:
            is_kept = rng.random(len(tokens.values), dtype=np.float32) >= self.dropout
        if is_kept is not None and has_context:
            shows_context = rng.random(len(tokens), dtype=np.float32) >= self.context_dropout
            is_context = bagger.kinds.take(tokens.values) >= CONTEXT
            is_kept = np.where(is_context, np.repeat(shows_context, tokens.lengths), is_kept)
        sentence_features = self.encoder.sentence_features(corpus.sentences[ids], corpus.descriptions[ids])
        targets = self.sampler.collate(plan, corpus.labels, shows_context)
        return Batch(bagger.bags(tokens, is_kept, sentence_features), targets)


class BatchLoader:
    """Loads the batches of an epoch, starting with any batch.

    Args:
        folder: Folder of a Corpus.
        sampler: Groups titles into batches, and creates the data for the loss function.
        title_ids: Ids of the titles to train on, int64 (titles,); None: all labelled training titles.
        dropout: Share of the tokens of a title, except context tokens, that are dropped at random.
        context_dropout: Share of titles whose context tokens are all dropped.
        encoder: Encoder that computes the sentence features from sentence vectors.
        seed: Seed of all random numbers.
        workers: Number of worker processes; 0: load in this process; AUTOMATIC: choose by free memory.
        pin: Whether batches are in page-locked memory.
    """

    def __init__(
        self,
        folder: Path,
        sampler: Sampler,
        *,
        title_ids: np.ndarray | None = None,
        dropout: float,
        context_dropout: float = 0.0,
        encoder: Encoder = DEFAULT_ENCODER,
        seed: int,
        workers: int,
        pin: bool = False,
    ) -> None:
        self._batches = _Batches(folder, sampler, encoder, dropout, context_dropout, seed)
        self._corpus = open_corpus(folder)
        self._title_ids = self._corpus.training if title_ids is None else title_ids
        if workers == AUTOMATIC:
            corpus_bytes = sum(file.stat().st_size for file in Path(folder).glob("*.npy"))
            workers = choose_loading_workers(
                corpus_bytes=corpus_bytes, free_bytes=free_memory(), cores=cores()
            )
        self.workers = workers
        self._delivery = Delivery(self._batches, workers=workers, pin=pin)

    def epoch(self, epoch: int, first_batch: int = 0, stride: int = 1) -> tuple[int, Iterator[Batch]]:
        """Returns the number of batches of an epoch, and an iterator over some of them.

        The iterator starts with batch ``first_batch`` and yields every ``stride``-th batch.
        """
        rng = np.random.default_rng([self._batches.seed, epoch])
        plans = self._batches.sampler.plan_epoch(self._title_ids, self._corpus.labels, rng)
        items = [(epoch, number, plan) for number, plan in enumerate(plans)]
        return len(plans), self._delivery.deliver(items[first_batch::stride])


def choose_loading_workers(*, corpus_bytes: int, free_bytes: int, cores: int) -> int:
    """Chooses the number of worker processes: 0 if the corpus fits in half of the free memory, else up to 4.

    If the corpus does not fit, worker processes read it from disk, so that the training loop need not wait
    for the disk (docs/loading.md).
    """
    return 0 if corpus_bytes <= MAX_MEMORY_SHARE * free_bytes else min(cores - 1, MAX_WORKERS)


def free_memory() -> int:
    """Returns the bytes of memory that are available without swapping; if unknown, the total memory."""
    try:
        with open("/proc/meminfo", encoding="utf-8") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
