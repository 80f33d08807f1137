"""Predicts categories: combines the vote of the nearest training titles with the linear part.

    score = (VOTE_WEIGHT · vote + support) / (VOTE_WEIGHT + 1),    support = 1 / (1 + exp(−SLOPE · margin))

The neighbours of a title are the k nearest training titles that have labels (categories). The vote of a label
is the sum of the cosines of the neighbours that have the label, divided by k. The margin is computed by the
linear part, a linear SVM per label (linear_part.py). Vote, support and score are between 0 and 1.

The constants were chosen on folds of the training titles of development guides (docs/benchmark.md). All
predictions of categories are computed here: in scores, in the gate, and in `enrich`, `refresh`, `explain` and
`serve`. Models of older versions have no linear part. For these models, labels are ranked by the number of
neighbours that have the label, and the score is the vote.
"""

import numpy as np

from storage.arrays import Ragged
from storage.formats.corpus import OpenCorpus
from storage.shapes import Float, Float32, Int
from tasks.baselines.inputs import unit_sentence_features
from tasks.baselines.predictions import Predictions, predict_from_scores, sum_votes, vote
from tasks.predictor.linear_part import FORMS, LinearPart
from tasks.text.words import CONTEXT

VOTE_WEIGHT, SLOPE = 0.5, 2.0
NEIGHBOURS = 10  # number of neighbours that vote
_CHUNK_TITLES = 4096  # titles that are predicted at once, because the scores of all labels are in memory


def support_of(margins: np.ndarray) -> Float32[np.ndarray, "titles labels"]:
    """Maps margins of the linear part to the support of labels, from 0 to 1."""
    with np.errstate(over="ignore"):
        return (1 / (1 + np.exp(-np.float32(SLOPE) * margins))).astype(np.float32)


def corpus_support(
    part: LinearPart, corpus: OpenCorpus, rows: Int[np.ndarray, " queries"], form: str
) -> Float32[np.ndarray, "queries labels"]:
    """Computes the support of each label for titles of a Corpus.

    Args:
        part: Linear part of the predictor.
        corpus: All titles.
        rows: Row numbers of the titles.
        form: title_only, which ignores context tokens, or title_context.
    """
    tokens, kinds = corpus.tokens.take(rows), np.asarray(corpus.kinds)
    if form == FORMS[0]:
        tokens = tokens.where(kinds[tokens.values] < CONTEXT)
    features = unit_sentence_features(corpus.sentences, corpus.descriptions, rows)
    return support_of(part.margins(tokens, kinds, features))


def support_of_names(
    support: Float[np.ndarray, "titles labels"], name_of_label: Int[np.ndarray, " labels"], name_count: int
) -> Float32[np.ndarray, "titles names"]:
    """Computes the support of names that stand for one or more labels: the highest support of these labels.

    Args:
        support: Support of each label.
        name_of_label: Number of the name of each label; -1 for a label without a name.
        name_count: Number of names.
    """
    name_support = np.zeros((len(support), name_count), dtype=np.float32)
    for label, name in enumerate(name_of_label):
        if name >= 0:
            np.maximum(name_support[:, name], support[:, label], out=name_support[:, name])
    return name_support


def count_votes(
    neighbours: Int[np.ndarray, "queries k"],
    cosines: Float32[np.ndarray, "queries k"],
    labels: Ragged,
    label_count: int,
) -> Float[np.ndarray, "queries labels"]:
    """Computes the vote of the neighbours for each label, from 0 to 1.

    Args:
        neighbours: Neighbours of each title as row numbers of ``labels``; -1 stands for no neighbour.
        cosines: Cosine similarities of ``neighbours``.
        labels: Label ids of all titles that may be neighbours.
        label_count: Number of labels.
    """
    sums = sum_votes(neighbours, np.maximum(cosines, 0), labels, label_count)
    return sums / max(neighbours.shape[1], 1)


def score_labels(
    votes: Float[np.ndarray, "queries labels"], support: Float[np.ndarray, "queries labels"]
) -> Float[np.ndarray, "queries labels"]:
    """Computes the score of each label from its vote and its support; all are from 0 to 1."""
    return (VOTE_WEIGHT * votes + support) / (VOTE_WEIGHT + 1)


def predict(
    neighbours: Int[np.ndarray, "queries k"],
    cosines: Float32[np.ndarray, "queries k"],
    labels: Ragged,
    frequency: Int[np.ndarray, " labels"],
    support: Float[np.ndarray, "queries labels"] | None = None,
) -> Predictions:
    """Predicts the labels of titles: all labels with a score of at least ½, and always the top label.

    Args:
        neighbours: Neighbours of each title as row numbers of ``labels``; -1 stands for no neighbour.
        cosines: Cosine similarities of ``neighbours``.
        labels: Label ids of all titles that may be neighbours.
        frequency: Number of training titles with each label; of labels with equal scores, the more frequent
            label is ranked first.
        support: Support of each label; None for models of older versions, in which only neighbours vote.
    """
    if support is None:
        return vote(neighbours, cosines, labels, frequency)
    scores = score_labels(count_votes(neighbours, cosines, labels, len(frequency)), support)
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
        neighbours: Neighbours of each title as row numbers of ``labels``; -1 stands for no neighbour.
        cosines: Cosine similarities of ``neighbours``.
        labels: Label ids of all titles.
        label_count: Number of labels.
        support: Support of each label; None for models of older versions, in which only neighbours vote.

    Returns:
        The top label of each title, and its score from 0 to 1; -1 and 0 for a title without votes.
    """
    top_labels, scores = np.full(len(neighbours), -1), np.zeros(len(neighbours))
    label_counts = np.bincount(labels.values, minlength=label_count)
    for start in range(0, len(neighbours) if label_count else 0, _CHUNK_TITLES):
        chunk = slice(start, start + _CHUNK_TITLES)
        votes = count_votes(neighbours[chunk], cosines[chunk], labels, label_count)
        if support is None:
            label_scores, top = votes, vote(neighbours[chunk], cosines[chunk], labels, label_counts).top
        else:
            label_scores = score_labels(votes, support[chunk])
            top = predict_from_scores(label_scores, 2 * label_scores >= 1, label_counts).top
        has_votes = votes.any(axis=1)
        top_labels[chunk] = np.where(has_votes, top, -1)
        scores[chunk] = np.where(has_votes, label_scores[np.arange(len(top)), top], 0)
    return top_labels, scores
