"""Computes the tuning score for early stopping and `guidespace tune`, and detects collapsed vectors.

The validation titles are a part of the training titles, selected by a hash of their first content word, so
that every run selects the same titles. For each validation title, the 10 nearest of at most 5,000 training
titles are searched, by vectors without context tokens. The tuning score is the mean of two values: the
accuracy of the category that most of these neighbours have, and precision@10, which is the share of
neighbours that have a category in common with the title. The held-out sets of the evaluation are not used.
"""

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

MAX_BASE_TITLES = 5_000  # maximum number of training titles among which neighbours are searched
COLLAPSE_SAMPLE = 512  # approximate number of titles whose vectors are checked for collapse
NEIGHBOUR_COUNT = 10  # k of k-NN
COLLAPSE_COSINE = 0.95  # vectors with a higher mean cosine have collapsed; it is 0.0 to 0.3 for real guides
_BLOCK_TITLES = 1024  # validation titles that are scored at a time, which limits memory


class TuningSet:
    """Divides the training titles of a Corpus into training and validation titles, and scores their vectors.

    Args:
        corpus: The opened Corpus.
        share: Share of first words, from 0 to 1; titles with these first words are validation titles.

    Attributes:
        training: Ids (rows in the corpus) of the titles to train on, int64 (titles,).
        validation: Ids of the validation titles, int64 (titles,).
    """

    def __init__(self, corpus: OpenCorpus, share: float) -> None:
        title_ids = corpus.training
        is_validation = np.zeros(len(title_ids), dtype=bool)
        if share:
            is_validation = open_array(corpus.folder, "family_hash")[title_ids] < share
        self.training, self.validation = title_ids[~is_validation], title_ids[is_validation]
        base_size = MAX_BASE_TITLES if share else COLLAPSE_SAMPLE
        base_ids = self.training[:: -(-len(self.training) // base_size) or 1]
        self._bagger = Bagger(corpus.kinds)
        id_arrays = self.validation, base_ids
        self._validation_tokens, self._base_tokens = (without_context(corpus, ids) for ids in id_arrays)
        self._sentence_vectors = [(corpus.sentences[ids], corpus.descriptions[ids]) for ids in id_arrays]
        labels = (corpus.labels.take(ids).multi_hot(len(corpus.label_names)) for ids in id_arrays)
        self._validation_labels, self._base_labels = (torch.from_numpy(array).float() for array in labels)
        self._label_counts = self._base_labels.sum(0)

    def score(self, trainer: Trainer) -> dict[str, float]:
        """Returns scores of the current vectors by name: mean_cosine, effective_rank and tuning_score.

        The tuning_score is missing if there are no validation titles.
        """
        encoder = trainer.settings.encoder
        validation_features, base_features = (
            encoder.sentence_features(*vectors) for vectors in self._sentence_vectors
        )
        base_vectors = trainer.vectors(self._base_tokens, self._bagger, base_features)
        sample = base_vectors[:: max(1, len(base_vectors) // COLLAPSE_SAMPLE)]
        scores = {"mean_cosine": mean_cosine(sample), "effective_rank": effective_rank(sample)}
        if len(self.validation):
            scores["tuning_score"] = self._tuning_score(
                trainer.vectors(self._validation_tokens, self._bagger, validation_features), base_vectors
            )
        return scores

    def _tuning_score(self, validation: Tensor, base: Tensor) -> float:
        """Returns the tuning score of the vectors of validation titles and of (base) training titles."""
        neighbours = map(torch.from_numpy, top_neighbours(validation.numpy(), base.numpy(), NEIGHBOUR_COUNT))
        precisions, is_correct = [], []
        for neighbour_ids, cosines, labels in zip(
            *(tensor.split(_BLOCK_TITLES) for tensor in (*neighbours, self._validation_labels)), strict=True
        ):
            is_neighbour = (neighbour_ids >= 0).unsqueeze(2)
            # (titles, k, labels)
            neighbour_labels = self._base_labels[neighbour_ids.clamp(min=0)] * is_neighbour
            mean_cosines = (neighbour_labels * cosines.unsqueeze(2)).mean(1)
            # if labels have equally many neighbours, the cosines decide, then the frequency of the labels
            votes = neighbour_labels.sum(1).double() + 1e-3 * mean_cosines + 1e-9 * self._label_counts
            precisions.append((neighbour_labels * labels.unsqueeze(1)).any(2).float().mean(1))
            is_correct.append(labels.gather(1, votes.argmax(1, keepdim=True)).squeeze(1))
        return float((torch.cat(precisions).mean() + torch.cat(is_correct).mean()) / 2)


def mean_cosine(vectors: Float[Tensor, "titles dim"]) -> float:
    """Returns the mean cosine of all pairs of unit vectors; 0 for fewer than two vectors."""
    count = len(vectors)
    if count < 2:
        return 0.0
    return float((vectors.sum(0).square().sum() - vectors.square().sum()) / (count * (count - 1)))


def effective_rank(vectors: Float[Tensor, "titles dim"]) -> float:
    """Returns the effective number of dimensions of vectors, from 1 to dim; 0 if all vectors are zero.

    The result is exp(H), where H is the entropy of the singular values, normalised to sum to 1. A low value
    does not mean that the vectors have collapsed: with two categories, all vectors may lie on a line.

    References: O. Roy, M. Vetterli, The effective rank, EUSIPCO 2007, definition 1.
    """
    singular_values = torch.linalg.eigvalsh((vectors.T @ vectors).double()).clamp(min=0).sqrt()
    shares = singular_values / singular_values.sum().clamp(min=1e-30)
    return float(torch.special.entr(shares).sum().exp()) if singular_values.any() else 0.0


def without_context(corpus: OpenCorpus, title_ids: np.ndarray) -> Ragged:
    """Returns the tokens of the titles with the ids ``title_ids``, without context tokens."""
    tokens = corpus.tokens.take(title_ids)
    return tokens.where(corpus.kinds[tokens.values] < CONTEXT)
