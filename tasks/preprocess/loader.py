"""Batches for training: whole batches by vectorised gathers, in this process or in DataLoader workers.

Chance belongs to (seed, epoch, number of the batch), never to a worker: any number of workers gives the same batches,
and a run resumed at (epoch, batch) sees what the uninterrupted run saw.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from storage.arrays import Ragged
from tasks.pool import AUTOMATIC, cores
from tasks.preprocess.bags import Bagger, Bags
from tasks.preprocess.corpus import OpenCorpus, open_corpus
from tasks.preprocess.delivery import Delivery
from tasks.preprocess.orders import ByGroup, Order
from tasks.preprocess.workers import choose_loading_workers, free_memory
from tasks.tokenize.words import CONTEXT


class Batch(NamedTuple):
    """One step's titles, and what the objective needs to know of them."""

    bags: Bags
    groups: Any


class Sampler(Protocol):
    """The part of an objective that says what a batch is."""

    def plan_epoch(self, rows: np.ndarray, labels: Ragged, rng: np.random.Generator) -> list[Any]:
        """The batches of one epoch, before anything is gathered."""
        ...

    def collate(self, plan: Any, labels: Ragged, aired: np.ndarray) -> Any:
        """What the loss needs to know of a batch; aired: bool (titles,): is shown with how it airs, not the title alone."""
        ...


class _Batches:
    """Plans to batches. Pickled, it holds the corpus' path, never its arrays."""

    def __init__(self, folder: Path, sampler: Sampler, dropout: float, context_dropout: float, seed: int) -> None:
        self.folder, self.sampler, self.dropout, self.context_dropout, self.seed = folder, sampler, dropout, context_dropout, seed
        self._open: tuple[OpenCorpus, Bagger] | None = None

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
        keep = rng.random(len(tokens.values), dtype=np.float32) >= self.dropout if self.dropout or with_context else None
        aired = np.zeros(len(tokens), dtype=bool)
        if keep is not None and with_context:
            aired = rng.random(len(tokens), dtype=np.float32) >= self.context_dropout
            keep = np.where(bagger.kinds.take(tokens.values) >= CONTEXT, np.repeat(aired, tokens.lengths), keep)
        return Batch(bagger.bags(tokens, keep), self.sampler.collate(plan, corpus.labels, aired))


EVERY_TITLE = ByGroup()


class BatchLoader:
    """Loads the batches of any epoch, from any of them on.

    Args:
        folder: Of a Corpus.
        sampler: The objective.
        rows: int64: the titles to show; all labelled training titles by default.
        order: Which of them an epoch shows, and in which company; all, as the objective groups them, by default.
        dropout: Share of a title's own entries left out of its bag, drawn anew each time.
        context_dropout: Share of titles whose context is left out whole, likewise; no entry of it is left out alone.
        seed: Of all chance in here.
        workers: Processes that make batches, kept from epoch to epoch; 0 makes them in this one, AUTOMATIC chooses
            (tasks.preprocess.workers).
        pin: Whether batches come in pinned memory, from which a copy to the GPU need not be waited for.
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
        seed: int,
        workers: int,
        pin: bool = False,
    ) -> None:
        self._dataset = _Batches(folder, sampler, dropout, context_dropout, seed)
        self._corpus = open_corpus(folder)
        self._rows = self._corpus.training if rows is None else rows
        self._order = order
        self.workers = _choose(folder) if workers == AUTOMATIC else workers
        self._delivery = Delivery(self._dataset, workers=self.workers, pin=pin)

    def epoch(self, epoch: int, first: int = 0) -> tuple[int, Iterator[Batch]]:
        """Number of batches in an epoch, and its batches from the first that is asked for."""
        rng = np.random.default_rng([self._dataset.seed, epoch])
        portions = self._order.portions(self._rows, self._corpus, rng)
        plans = [plan for rows in portions for plan in self._dataset.sampler.plan_epoch(rows, self._corpus.labels, rng)]
        return len(plans), self._delivery.deliver([(epoch, number, plan) for number, plan in enumerate(plans)][first:])


def _choose(folder: Path) -> int:
    """Workers for this corpus on this machine as it is now."""
    size = sum(file.stat().st_size for file in Path(folder).glob("*.npy"))
    return choose_loading_workers(corpus_bytes=size, free_bytes=free_memory(), cores=cores())
