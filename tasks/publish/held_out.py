"""What the pictures of the held-out titles need: each title's rarest word, and what k-NN and hyperplanes say of it.

Hyperplanes: one a category over the same vectors, fitted by ridge regression to ±1 (a least-squares classifier), so
that both read the same space and differ only in the shape of the borders they draw.

Reference: Rifkin, Yeo, Poggio, Regularized least-squares classification, 2003.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tasks.evaluate.knn import predict_labels
from tasks.preprocess.corpus import TRAIN, OpenCorpus
from tasks.tokenize.words import WORD

RIDGE = 1.0
K = 10


@dataclass(frozen=True)
class Verdicts:
    """Two answers to one question, a row a held-out title.

    Attributes:
        knn: Label that k-NN gives: int64, shape (queries,).
        plane: Label of the hyperplane it lies farthest above, likewise.
        knn_right: bool: the title holds that label.
        plane_right: bool, likewise.
    """

    knn: np.ndarray
    plane: np.ndarray
    knn_right: np.ndarray
    plane_right: np.ndarray


def rarest_words(corpus: OpenCorpus, titles: np.ndarray) -> np.ndarray:
    """How many training titles hold the rarest word of each title; 0 where it holds a word that none holds, -1 where it has no word.

    Args:
        corpus: Its tokens and kinds.
        titles: Rows, shape (titles,).
    """
    owner = corpus.tokens.owners
    tokens = np.asarray(corpus.tokens.values, dtype=np.int64)
    word = corpus.kinds[tokens] == WORD
    pairs = np.unique(owner[word] * len(corpus.kinds) + tokens[word])
    owner, tokens = np.divmod(pairs, max(len(corpus.kinds), 1))
    held = np.bincount(tokens[corpus.split[owner] == TRAIN], minlength=len(corpus.kinds))
    rarest = np.full(len(corpus), np.iinfo(np.int64).max)
    np.minimum.at(rarest, owner, held[tokens])
    rarest[rarest == np.iinfo(np.int64).max] = -1
    rarest[np.asarray(corpus.oov)] = 0
    return rarest[titles]


def judge_borders(corpus: OpenCorpus, vectors: np.ndarray, queries: np.ndarray) -> Verdicts:
    """Asks k-NN and hyperplanes for the category of held-out titles.

    Args:
        corpus: Labels and splits.
        vectors: float32, shape (titles, dim), unit norm or zero.
        queries: Rows of labelled held-out titles, shape (queries,).
    """
    training = corpus.training
    labels, count = corpus.labels.take(training), len(corpus.label_names)
    knn = predict_labels(vectors[queries], vectors[training], labels, np.bincount(labels.values, minlength=count), K).top
    points = np.column_stack([vectors[training], np.ones(len(training))]).astype(np.float64)
    wanted = np.where(labels.members(count), 1.0, -1.0)
    normals = np.linalg.solve(points.T @ points + RIDGE * np.eye(points.shape[1]), points.T @ wanted)  # (dim + 1, labels)
    plane = (vectors[queries] @ normals[:-1] + normals[-1]).argmax(axis=1)
    truth = corpus.labels.take(queries).members(count)
    rows = np.arange(len(queries))
    return Verdicts(knn, plane, truth[rows, knn], truth[rows, plane])
