"""Batches for training: whole batches by vectorised gathers, in this process or in DataLoader workers.

Random numbers depend on (seed, epoch, number of the batch), never on a worker: any number of workers gives
the same batches, and a run resumed at (epoch, batch) sees what the uninterrupted run saw.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from storage.arrays import Ragged
from storage.formats.corpus import OpenCorpus, open_corpus
from tasks.encoder import Bag, Encoder
from tasks.encoder.bags import Bagger, Bags
from tasks.loading.delivery import Delivery
from tasks.loading.orders import ByGroup, Order
from tasks.pool import AUTOMATIC, cores
from tasks.text.words import CONTEXT

EVERY_TITLE, EVERY_KIND = ByGroup(), Bag()
SHARE_OF_MEMORY = 0.5  # of what is free: rows, optimizer state and other programs need the rest
MOST_WORKERS = 4  # one process cannot fetch what more of them make


class Batch(NamedTuple):
    """One step's titles, and what the objective needs to know of them."""

    bags: Bags
    groups: Any


class Sampler(Protocol):
    """The part of an objective that forms batches."""

    def plan_epoch(self, rows: np.ndarray, labels: Ragged, rng: np.random.Generator) -> list[Any]:
        """The batches of one epoch, before anything is gathered."""
        ...

    def collate(self, plan: Any, labels: Ragged, aired: np.ndarray) -> Any:
        """What the loss needs of a batch; ``aired``, bool (titles,): shown with airing context."""
        ...


@dataclass
class _Batches:
    """Makes batches of plans. Pickled, it holds the corpus' path, never its arrays."""

    folder: Path
    sampler: Sampler
    encoder: Encoder
    dropout: float
    context_dropout: float
    seed: int
    _open: tuple[OpenCorpus, Bagger] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_open": None}

    def __getitem__(self, item: tuple[int, int, Any]) -> Batch:
        epoch, number, plan = item
        if self._open is None:
            corpus = open_corpus(self.folder)
            self._open = corpus, Bagger(corpus.kinds)
        corpus, bagger = self._open
        tokens = corpus.tokens.take(plan.rows)
        rng = np.random.default_rng([self.seed, epoch, number])
        with_context = bagger.kinds.max(initial=0) >= CONTEXT
        keep, aired = None, np.zeros(len(tokens), dtype=bool)
        if self.dropout or with_context:
            keep = rng.random(len(tokens.values), dtype=np.float32) >= self.dropout
        if keep is not None and with_context:
            aired = rng.random(len(tokens), dtype=np.float32) >= self.context_dropout
            of_context = bagger.kinds.take(tokens.values) >= CONTEXT
            keep = np.where(of_context, np.repeat(aired, tokens.lengths), keep)
        dense = self.encoder.dense(corpus.sentences[plan.rows], corpus.descriptions[plan.rows])
        return Batch(bagger.bags(tokens, keep, dense), self.sampler.collate(plan, corpus.labels, aired))


class BatchLoader:
    """Loads the batches of any epoch, from any of them on.

    Args:
        folder: Of a Corpus.
        sampler: The objective.
        rows: int64: the titles to train on; None: all labelled training titles.
        dropout: Fraction of a title's own entries dropped from its bag, drawn anew each time.
        context_dropout: Fraction of titles whose context is dropped, always as a whole.
        encoder: Weighs descriptions in the dense input.
        workers: Processes that make batches, kept between epochs; 0 makes them here, AUTOMATIC chooses.
    """

    def __init__(
        self,
        folder: Path,
        sampler: Sampler,
        *,
        rows: np.ndarray | None = None,
        order: Order = EVERY_TITLE,
        dropout: float,
        context_dropout: float = 0.0,
        encoder: Encoder = EVERY_KIND,
        seed: int,
        workers: int,
        pin: bool = False,
    ) -> None:
        self._dataset = _Batches(folder, sampler, encoder, dropout, context_dropout, seed)
        self._corpus = open_corpus(folder)
        self._rows, self._order = self._corpus.training if rows is None else rows, order
        if workers == AUTOMATIC:
            size = sum(file.stat().st_size for file in Path(folder).glob("*.npy"))
            workers = choose_loading_workers(corpus_bytes=size, free_bytes=free_memory(), cores=cores())
        self.workers = workers
        self._delivery = Delivery(self._dataset, workers=workers, pin=pin)

    def epoch(
        self, epoch: int, first: int = 0, stop: int | None = None, every: int = 1
    ) -> tuple[int, Iterator[Batch]]:
        """Number of batches in an epoch, and every n-th of them from number ``first`` on, up to ``stop``."""
        rng = np.random.default_rng([self._dataset.seed, epoch])
        plans = []
        for rows in self._order.batches(self._rows, self._corpus, rng):
            plans += self._dataset.sampler.plan_epoch(rows, self._corpus.labels, rng)
        items = [(epoch, number, plan) for number, plan in enumerate(plans)]
        return len(plans), self._delivery.deliver(items[first:stop:every])


def choose_loading_workers(*, corpus_bytes: int, free_bytes: int, cores: int) -> int:
    """Processes that load batches: 0 where the corpus fits in half of the free memory, else up to four.

    From disk the workers wait for pages in place of training (docs/loading.md).
    """
    return 0 if corpus_bytes <= SHARE_OF_MEMORY * free_bytes else min(cores - 1, MOST_WORKERS)


def free_memory() -> int:
    """Bytes available without swapping, page cache included; all memory where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="utf-8") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
