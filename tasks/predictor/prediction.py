"""Predicts categories: combines the vote of the nearest training titles with the linear part.

    score = (VOTE_WEIGHT · vote + support) / (VOTE_WEIGHT + 1),    support = 1 / (1 + exp(−SLOPE · margin))

The vote of a label is the sum of the cosines of those of the k nearest labelled training titles that have it,
divided by k; the margin is that of the linear part. The score is between 0 and 1. The constants were chosen
on folds of the training titles of development guides (docs/benchmark.md). Every prediction of categories is
computed here: in scores, in the gate, and in `enrich`, `refresh`, `explain` and `serve`.

Without a linear part (models of older versions), labels are ranked by the number of neighbours that have
them, and the score is the vote.
"""

import numpy as np

from storage.arrays import Ragged
from storage.formats.corpus import OpenCorpus
from storage.shapes import Float, Float32, Int
from tasks.baselines.inputs import dense_inputs
from tasks.baselines.predictions import Predictions, predict_from_scores, vote
from tasks.predictor.linear_part import FORMS, LinearPart
from tasks.text.words import CONTEXT

VOTE_WEIGHT, SLOPE = 0.5, 2.0
NEIGHBOURS = 10  # voting neighbours
_CHUNK = 4096  # titles per batch, because the scores of all labels are in memory


def support_of(margins: np.ndarray) -> Float32[np.ndarray, "titles labels"]:
    """Maps margins of the linear part to supports from 0 to 1: 1 / (1 + exp(−SLOPE · margin))."""
    with np.errstate(over="ignore"):
        return (1 / (1 + np.exp(-np.float32(SLOPE) * margins))).astype(np.float32)


def corpus_support(
    part: LinearPart, corpus: OpenCorpus, rows: Int[np.ndarray, " queries"], form: str
) -> Float32[np.ndarray, "queries labels"]:
    """Computes the support of each label for the titles in ``rows`` of a Corpus.

    ``form`` is title_only, which ignores context tokens, or title_context.
    """
    tokens, kinds = corpus.tokens.take(rows), np.asarray(corpus.kinds)
    if form == FORMS[0]:
        tokens = tokens.where(kinds[tokens.values] < CONTEXT)
    return support_of(part.margins(tokens, kinds, dense_inputs(corpus.sentences, corpus.descriptions, rows)))


def support_of_names(
    support: Float[np.ndarray, "titles labels"], name_of_column: Int[np.ndarray, " labels"], name_count: int
) -> Float32[np.ndarray, "titles names"]:
    """Returns the support of names of a vocabulary: the highest support of their labels.

    Args:
        support: Support of each label.
        name_of_column: Number of the name of each label; -1 for a label without a name.
        name_count: Number of names.
    """
    of_names = np.zeros((len(support), name_count), dtype=np.float32)
    for column, name in enumerate(name_of_column):
        if name >= 0:
            np.maximum(of_names[:, name], support[:, column], out=of_names[:, name])
    return of_names


def count_votes(
    neighbours: Int[np.ndarray, "queries k"],
    cosines: Float32[np.ndarray, "queries k"],
    labels: Ragged,
    label_count: int,
) -> Float[np.ndarray, "queries labels"]:
    """Returns the vote of the neighbours for each label, from 0 to 1: sum of the cosines with the label / k.

    Args:
        neighbours: Neighbours of each title as rows of ``labels``; -1 stands for no neighbour.
        cosines: Cosine similarities of ``neighbours``.
        labels: Label ids of the neighbours.
        label_count: Number of labels.
    """
    rows, columns = np.nonzero(neighbours >= 0)
    votes = labels.take(neighbours[rows, columns])
    cells = rows[votes.row_ids] * label_count + votes.values
    weights = np.maximum(cosines[rows, columns].astype(np.float64), 0)[votes.row_ids]
    sums = np.bincount(cells, weights, len(neighbours) * label_count)
    return sums.reshape(len(neighbours), label_count) / max(neighbours.shape[1], 1)


def score_labels(
    votes: Float[np.ndarray, "queries labels"], support: Float[np.ndarray, "queries labels"]
) -> Float[np.ndarray, "queries labels"]:
    """Returns the score of each label: the weighted mean of its vote and its support, from 0 to 1."""
    return (VOTE_WEIGHT * votes + support) / (VOTE_WEIGHT + 1)


def predict(
    neighbours: Int[np.ndarray, "queries k"],
    cosines: Float32[np.ndarray, "queries k"],
    labels: Ragged,
    frequency: Int[np.ndarray, " labels"],
    support: Float[np.ndarray, "queries labels"] | None = None,
) -> Predictions:
    """Ranks labels by score; predicts those with a score of at least ½, or the top label.

    Args:
        neighbours: Neighbours of each title as rows of ``labels``; -1 stands for no neighbour.
        cosines: Cosine similarities of ``neighbours``.
        labels: Label ids of the neighbours.
        frequency: Number of training titles with each label, which breaks ties.
        support: Support of each label by the linear part; None: only neighbours vote.
    """
    if support is None:
        return vote(neighbours, cosines, labels, frequency)
    return _rank(score_labels(count_votes(neighbours, cosines, labels, len(frequency)), support), frequency)


def _rank(scores: np.ndarray, frequency: np.ndarray) -> Predictions:
    return predict_from_scores(scores, 2 * scores >= 1, frequency)


def predict_top(
    neighbours: Int[np.ndarray, "queries k"],
    cosines: Float32[np.ndarray, "queries k"],
    labels: Ragged,
    label_count: int,
    support: Float[np.ndarray, "queries labels"] | None = None,
) -> tuple[Int[np.ndarray, " queries"], Float[np.ndarray, " queries"]]:
    """Predicts the label with the highest score for each title.

    Args:
        neighbours: Neighbours of each title as rows of ``labels``; -1 stands for no neighbour.
        cosines: Cosine similarities of ``neighbours``.
        labels: Label ids of all titles.
        label_count: Number of labels.
        support: Support of each label by the linear part; None: only neighbours vote.

    Returns:
        The label with the highest score and its score in [0, 1]; -1 and 0 for a title without votes.
    """
    top_labels, scores = np.full(len(neighbours), -1), np.zeros(len(neighbours))
    frequency = np.bincount(labels.values, minlength=label_count)
    for start in range(0, len(neighbours) if label_count else 0, _CHUNK):
        chunk = slice(start, start + _CHUNK)
        score = votes = count_votes(neighbours[chunk], cosines[chunk], labels, label_count)
        if support is None:
            top = vote(neighbours[chunk], cosines[chunk], labels, frequency).top
        else:
            score = score_labels(votes, support[chunk])
            top = _rank(score, frequency).top
        has_votes = votes.any(axis=1)
        top_labels[chunk] = np.where(has_votes, top, -1)
        scores[chunk] = np.where(has_votes, score[np.arange(len(top)), top], 0)
    return top_labels, scores
