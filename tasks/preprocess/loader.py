"""Batches for training: whole batches by vectorised gathers, in this process or in DataLoader workers.

Chance belongs to (seed, epoch, number of the batch), never to a worker: any number of workers gives the same batches,
and a run resumed at an epoch sees what the uninterrupted run saw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from torch.utils.data import DataLoader, Dataset

from storage.arrays import Ragged
from tasks.preprocess.bags import Bagger, Bags
from tasks.preprocess.corpus import OpenCorpus, open_corpus
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

    def collate(self, plan: Any, labels: Ragged) -> Any:
        """What the loss needs to know of a batch."""
        ...


class _Batches(Dataset[Batch]):
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
        keep = rng.random(len(tokens.values), dtype=np.float32) >= self.dropout
        bare = rng.random(len(tokens), dtype=np.float32) < self.context_dropout
        keep &= ~(np.repeat(bare, tokens.lengths) & (corpus.kinds[tokens.values] >= CONTEXT))
        return Batch(bagger.bags(tokens, keep), self.sampler.collate(plan, corpus.labels))


class BatchLoader:
    """Loads the batches of any epoch.

    Args:
        folder: Of a Corpus.
        sampler: The objective.
        dropout: Share of entries left out of each bag, drawn anew each time.
        context_dropout: Share of titles whose context is left out whole, likewise.
        seed: Of all chance in here.
        workers: Processes (forkserver); 0 loads in this one, which is faster while a batch takes less than a few
            milliseconds to gather.
    """

    def __init__(self, folder: Path, sampler: Sampler, *, dropout: float, context_dropout: float = 0.0, seed: int, workers: int) -> None:
        self._dataset = _Batches(folder, sampler, dropout, context_dropout, seed)
        self._corpus = open_corpus(folder)
        self._rows = self._corpus.training
        self._workers = workers

    def epoch(self, epoch: int) -> tuple[int, Iterator[Batch]]:
        """Number of batches in an epoch, and the batches."""
        plans = self._dataset.sampler.plan_epoch(self._rows, self._corpus.labels, np.random.default_rng([self._dataset.seed, epoch]))
        return len(plans), self._load([(epoch, number, plan) for number, plan in enumerate(plans)])

    def _load(self, items: Sequence[tuple[int, int, Any]]) -> Iterator[Batch]:
        if not self._workers:
            yield from (self._dataset[item] for item in items)
            return
        yield from DataLoader(self._dataset, sampler=items, batch_size=None, num_workers=self._workers, multiprocessing_context="forkserver", prefetch_factor=4)
