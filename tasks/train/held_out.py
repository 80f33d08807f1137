"""Titles of the training split that training does not see, so that it can tell when to stop; and whether vectors still differ.

The three held-out sets of the scores are never read here. Which families (first content words) are set aside is decided
by a salted hash that the Corpus carries, so a title set aside today is set aside tomorrow, whatever the guide holds then.

The score is the mean of k-NN accuracy and precision@10 (k = 10, cosine, title alone) of the titles set aside among at
most 5,000 training titles: a reading of the same kind as the scores', in a tenth of a second.

Vectors that are all alike satisfy many a loss: the mean cosine of a sample's titles tells. How many directions they use
is told beside it, as the effective rank, exp(H) of the sample's normalised singular values.

References:
    Roy, Vetterli. The effective rank: A measure of effective dimensionality. EUSIPCO 2007, definition 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from storage.arrays import Ragged, open_array
from tasks.neighbours.similarity import top_neighbours
from tasks.preprocess.bags import Bagger
from tasks.preprocess.corpus import OpenCorpus
from tasks.tokenize.words import CONTEXT
from tasks.train.step import Learner

BASE, SAMPLE, NEIGHBOURS = 5_000, 512, 10
_BLOCK = 1024  # titles whose neighbours' labels are held at once: a million titles would take gigabytes
ALIKE = 0.95  # mean cosine; trained vectors of real guides have .0 to .3


class Reading(NamedTuple):
    """What an epoch's vectors are worth.

    Attributes:
        score: Mean of accuracy and precision@10 of the titles set aside; none where none are.
        mean_cosine: Of pairs of training titles.
        effective_rank: Of a sample of training titles.
    """

    score: float | None
    mean_cosine: float
    effective_rank: float

    @property
    def collapsed(self) -> str:
        """What is wrong with the vectors; "" where nothing is. Not told by the rank: two categories may well lie on one line."""
        return f"all vectors are alike (mean cosine {self.mean_cosine:.3f})" if self.mean_cosine > ALIKE else ""


NOTHING_READ = Reading(None, 0.0, 0.0)


class HeldOut:
    """Splits the labelled training titles and reads vectors after an epoch.

    Args:
        folder: Of the Corpus.
        corpus: The same, opened.
        share: Of the families that are set aside; 0 sets none aside.

    Attributes:
        training: int64 rows of the titles that training shows.
        aside: int64 rows of those set aside.
    """

    def __init__(self, folder: Path, corpus: OpenCorpus, share: float) -> None:
        rows = corpus.training
        aside = open_array(folder, "family_hash")[rows] < share if share else np.zeros(len(rows), dtype=bool)
        self.training, self.aside = rows[~aside], rows[aside]
        base = self.training[:: -(-len(self.training) // (BASE if share else SAMPLE)) or 1]
        self._bagger = Bagger(corpus.kinds)
        self._aside, self._base = _alone(corpus, self.aside), _alone(corpus, base)
        self._aside_labels, self._base_labels = (torch.from_numpy(corpus.labels.take(some).members(len(corpus.label_names))).float() for some in (self.aside, base))
        self._frequency = self._base_labels.sum(0)

    def read(self, learner: Learner) -> Reading:
        """Reads the vectors that the learner gives now."""
        base = learner.vectors(self._base, self._bagger)
        sample = base[:: max(1, len(base) // SAMPLE)]
        return Reading(self._score(learner.vectors(self._aside, self._bagger), base), mean_cosine(sample), effective_rank(sample))

    def _score(self, asked: Tensor, base: Tensor) -> float | None:
        if not len(asked):
            return None
        neighbours, cosines = map(torch.from_numpy, top_neighbours(asked.numpy(), base.numpy(), NEIGHBOURS))
        blocks = zip(*(tensor.split(_BLOCK) for tensor in (neighbours, cosines, self._aside_labels)), strict=True)
        alike, correct = map(torch.cat, zip(*(self._agree(*block) for block in blocks), strict=True))
        return float((alike.mean() + correct.mean()) / 2)

    def _agree(self, neighbours: Tensor, cosines: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
        """Of titles with labels ``own`` (titles, labels): share of neighbours with one of them, and whether the neighbours' vote is one."""
        theirs = self._base_labels[neighbours.clamp(min=0)] * (neighbours >= 0).unsqueeze(2)  # (titles, k, labels)
        alike = (theirs * own.unsqueeze(1)).any(2).float().mean(1)
        votes = theirs.sum(1).double() + 1e-3 * (theirs * cosines.unsqueeze(2)).mean(1) + 1e-9 * self._frequency
        return alike, own.gather(1, votes.argmax(1, keepdim=True)).squeeze(1)


def mean_cosine(vectors: Tensor) -> float:
    """Of all pairs of unit vectors (titles, dim); 0 of fewer than two."""
    n = len(vectors)
    return float((vectors.sum(0).square().sum() - vectors.square().sum()) / (n * (n - 1))) if n > 1 else 0.0


def effective_rank(vectors: Tensor) -> float:
    """Between 1 and the number of dimensions; 0 where every vector is zero."""
    values = torch.linalg.eigvalsh((vectors.T @ vectors).double()).clamp(min=0).sqrt()  # singular values
    shares = values / values.sum().clamp(min=1e-30)
    return float(torch.special.entr(shares).sum().exp()) if values.any() else 0.0


def _alone(corpus: OpenCorpus, rows: np.ndarray) -> Ragged:
    """Tokens of titles without how they air."""
    tokens = corpus.tokens.take(rows)
    kept = corpus.kinds[tokens.values] < CONTEXT
    offsets = np.concatenate([[0], np.cumsum(kept)])[tokens.offsets]
    return Ragged(offsets, tokens.values[kept])
