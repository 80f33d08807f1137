"""Common input of all rivals, and the scores of their vectors by our k-NN on the same held-out titles."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow.parquet as pq

from storage.formats.corpus import OpenCorpus, open_corpus
from storage.formats.vocabulary import SPLITS
from tasks.scoring.bootstrap import count_groups, draw_groups, intervals, number_groups
from tasks.scoring.metrics import measure
from tasks.scoring.protocols import CorpusTitles, score_knn
from tasks.text.titles import parse_title
from tasks.text.words import split_words

DIM, K, RESAMPLES = 100, 10, 1000


class Spent(NamedTuple):
    """Duration of a call: wall seconds, and CPU seconds of all threads."""

    wall: float
    cpu: float


class Trained(NamedTuple):
    """Result of a rival's training: its seconds, and a function that returns unit vectors (titles, dim)."""

    spent: Spent
    vectors: Callable[[], np.ndarray]


class Rival(Protocol):
    """A method to train vectors of titles."""

    @property
    def name(self) -> str:
        """Name in the table."""
        ...

    @property
    def epochs(self) -> Sequence[int]:
        """Numbers of epochs that are tried, ascending; the learning rate falls to zero within each."""
        ...

    def train(self, contest: Contest, epochs: int, seed: int, threads: int) -> Trained:
        """Trains on the labelled training titles, in a process in which torch has ``threads`` threads."""
        ...


@dataclass(frozen=True)
class Score:
    """A score and its 95 % interval."""

    value: float
    low: float
    high: float


class Contest:
    """Titles of a corpus with their splits, and the inputs of rivals.

    Args:
        folder: Folder of a Corpus.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.corpus: OpenCorpus = open_corpus(folder)
        raw = pq.read_table(folder / "titles.parquet", columns=["raw_title"])["raw_title"].to_pylist()
        self.displays = [parse_title(title).display for title in raw]
        self.training = self.corpus.training
        split = np.array([SPLITS[code] for code in self.corpus.split])
        corpus = self.corpus
        self.titles = CorpusTitles(
            split=split,
            labels=corpus.labels,
            label_count=len(corpus.label_names),
            family=corpus.family,
            oov=corpus.oov,
            rare=corpus.rare,
        )

    def token_texts(self) -> list[str]:
        """Every title as the ids of its known tokens, which are the input of our training."""
        names = np.array([f"t{number}" for number in range(len(self.corpus.kinds))], dtype=object)
        offsets, values = self.corpus.tokens.offsets, names[np.asarray(self.corpus.tokens.values)]
        return [" ".join(values[start:end]) for start, end in itertools.pairwise(offsets)]

    def word_texts(self) -> list[str]:
        """Every title as its words, for rivals that compute n-grams themselves."""
        return [" ".join(split_words(display)) for display in self.displays]

    def labels_of(self, row: int) -> list[int]:
        """Returns the label ids of a title."""
        return self.corpus.labels.values[
            self.corpus.labels.offsets[row] : self.corpus.labels.offsets[row + 1]
        ].tolist()

    def pairs(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Returns the training titles in random order, each with a random title that shares a label."""
        labels = self.corpus.labels.take(self.training)
        members = np.repeat(self.training, labels.lengths)[np.argsort(labels.values, kind="stable")]
        sizes = np.bincount(labels.values, minlength=len(self.corpus.label_names))
        firsts = np.cumsum(sizes) - sizes
        anchors = rng.permutation(self.training)
        offsets, lengths = self.corpus.labels.offsets[anchors], self.corpus.labels.lengths[anchors]
        chosen = self.corpus.labels.values[offsets + (rng.random(len(anchors)) * lengths).astype(np.int64)]
        return anchors, members[firsts[chosen] + (rng.random(len(anchors)) * sizes[chosen]).astype(np.int64)]

    def scores(self, vectors: np.ndarray, protocol: str, *, resamples: int = RESAMPLES) -> dict[str, Score]:
        """Returns accuracy and precision@10 of vectors on one held-out set.

        Intervals are bootstraps over families (titles with the same first content word).
        """
        unit_vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        queries = self.titles.labelled(protocol)
        judgement = score_knn(self.titles, unit_vectors.astype(np.float32), queries, K)
        groups = number_groups(self.titles.family[queries])
        bounds = intervals(
            judgement, groups, draw_groups(count_groups(groups), resamples, np.random.default_rng(1))
        )
        measured = measure(judgement)
        return {
            shown: Score(float(measured[name] or math.nan), *(bounds[name] or (math.nan, math.nan)))
            for name, shown in (("accuracy", "accuracy"), ("precision_at_k", "precision_at_10"))
        }


def timed(call: Callable[[], object]) -> Spent:
    """Calls a function and returns the wall and CPU seconds of the call."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return Spent(time.perf_counter() - wall, time.process_time() - cpu)
