"""The tuning score, which early stopping and `guidespace tune` go by, and the check for collapsed vectors.
Training titles are set aside by a salted hash of their first content word in the Corpus: the same ones in
each run; the evaluation's held-out sets are never read here. The score is the mean of k-NN accuracy and
precision@10 (k = 10, cosine, title alone) of these titles among at most 5,000 training titles.
"""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from storage.arrays import Ragged, open_array
from storage.formats.corpus import OpenCorpus
from storage.shapes import Float
from tasks.encoder.bags import Bagger
from tasks.neighbours.similarity import top_neighbours
from tasks.text.words import CONTEXT
from tasks.train.step import Trainer

BASE, SAMPLE, NEIGHBOURS = 5_000, 512, 10
COLLAPSED = 0.95  # mean cosine; trained vectors of real guides have .0 to .3
_BLOCK = 1024  # titles whose neighbours' labels are held at once: a million titles would take gigabytes


class TuningSet:
    """Sets a fraction ``share`` of the first words' titles aside: int64 rows ``training`` and ``aside``."""

    def __init__(self, folder: Path, corpus: OpenCorpus, share: float) -> None:
        rows = corpus.training
        aside = open_array(folder, "family_hash")[rows] < share if share else np.zeros(len(rows), dtype=bool)
        self.training, self.validation = rows[~aside], rows[aside]
        base = self.training[:: -(-len(self.training) // (BASE if share else SAMPLE)) or 1]
        self._bagger = Bagger(corpus.kinds)
        sets = self.validation, base
        self._aside, self._base = (without_context(corpus, rows) for rows in sets)
        self._dense = [(corpus.sentences[rows], corpus.descriptions[rows]) for rows in sets]
        labels = (
            corpus.labels.take(some).members(len(corpus.label_names)) for some in (self.validation, base)
        )
        self._aside_labels, self._base_labels = (torch.from_numpy(own).float() for own in labels)
        self._frequency = self._base_labels.sum(0)

    def score(self, trainer: Trainer) -> dict[str, float]:
        """mean_cosine, effective_rank and, if titles are set aside, tuning_score of the learner's vectors."""
        aside_dense, base_dense = (trainer.settings.encoder.dense(*own) for own in self._dense)
        base = trainer.vectors(self._base, self._bagger, base_dense)
        sample = base[:: max(1, len(base) // SAMPLE)]
        scores = {"mean_cosine": mean_cosine(sample), "effective_rank": effective_rank(sample)}
        if len(self.validation):
            scores["tuning_score"] = self._score(
                trainer.vectors(self._aside, self._bagger, aside_dense), base
            )
        return scores

    def _score(self, queries: Tensor, base: Tensor) -> float:
        found = map(torch.from_numpy, top_neighbours(queries.numpy(), base.numpy(), NEIGHBOURS))
        precisions, correct = [], []
        for near, cosines, own in zip(
            *(some.split(_BLOCK) for some in (*found, self._aside_labels)), strict=True
        ):
            theirs = self._base_labels[near.clamp(min=0)] * (near >= 0).unsqueeze(2)  # (titles, k, labels)
            summed = (theirs * cosines.unsqueeze(2)).mean(1)
            votes = theirs.sum(1).double() + 1e-3 * summed + 1e-9 * self._frequency
            precisions.append((theirs * own.unsqueeze(1)).any(2).float().mean(1))
            correct.append(own.gather(1, votes.argmax(1, keepdim=True)).squeeze(1))
        return float((torch.cat(precisions).mean() + torch.cat(correct).mean()) / 2)


def mean_cosine(vectors: Float[Tensor, "titles dim"]) -> float:
    """Of all pairs of unit vectors; 0 of fewer than two."""
    n = len(vectors)
    return float((vectors.sum(0).square().sum() - vectors.square().sum()) / (n * (n - 1))) if n > 1 else 0.0


def effective_rank(vectors: Float[Tensor, "titles dim"]) -> float:
    """exp(H) of the normalised singular values, from 1 to dim; 0 of zeros. Two categories may lie on one
    line, so it is no criterion (Roy, Vetterli. EUSIPCO 2007, definition 1).
    """
    values = torch.linalg.eigvalsh((vectors.T @ vectors).double()).clamp(min=0).sqrt()  # singular values
    shares = values / values.sum().clamp(min=1e-30)
    return float(torch.special.entr(shares).sum().exp()) if values.any() else 0.0


def without_context(corpus: OpenCorpus, rows: np.ndarray) -> Ragged:
    """Token ids of titles alone, without how they air."""
    tokens = corpus.tokens.take(rows)
    kept = corpus.kinds[tokens.values] < CONTEXT
    return Ragged(np.concatenate([[0], np.cumsum(kept)])[tokens.offsets], tokens.values[kept])
