"""Trains the linear part of the predictor (a linear SVM per label) on the labelled titles of a Corpus."""

from typing import Any

import numpy as np

from storage.arrays import Ragged, offsets_of
from storage.formats.corpus import OpenCorpus
from tasks.baselines.inputs import unit_sentence_features
from tasks.baselines.tfidf import label_directions
from tasks.linear.solvers import fit_svms
from tasks.linear.svm import OnlineSvm
from tasks.predictor.features import distinct_tokens, inverse_frequencies, weigh_distinct
from tasks.predictor.linear_part import FORMS, FormModel, LinearPart
from tasks.text.words import CONTEXT

DIRECTIONS = 32  # directions of sentence features that separate labels best (tasks/baselines/tfidf.py)
MAX_DIRECTION_TITLES = 200_000  # maximum number of titles from which the directions are computed
# Maximum numbers of stored weights and of tokens per form (title_only, title_context). The two forms take at
# most 15 MB in linear.safetensors: 3 bytes per weight and 6 bytes per token.
MAX_WEIGHTS, MAX_TOKENS = 1_250_000, 400_000
MAX_TRAINING_WEIGHTS = 100_000_000  # maximum number of weights during training (400 MB)
PASSES = 3  # passes over the training titles; mean accuracy on US1 and ZA1: .601, with four passes .599
MEMORY_BYTES = 1 << 30  # maximum size of training titles in memory; if larger, they are read from disk


def fit_linear_part(corpus: OpenCorpus) -> tuple[LinearPart, str]:
    """Trains the linear part of the predictor (a linear SVM per label) on the labelled training titles.

    Returns:
        The linear part, and the name of the solver that trained it.
    """
    rows, label_count = corpus.training, len(corpus.label_names)
    labels, kinds = corpus.labels.take(rows), np.asarray(corpus.kinds)
    sentence_features = unit_sentence_features(corpus.sentences, corpus.descriptions, rows)
    sample = np.arange(len(rows))
    if len(rows) > MAX_DIRECTION_TITLES:
        sample = np.sort(np.random.default_rng(0).choice(sample, MAX_DIRECTION_TITLES, replace=False))
    directions = np.zeros((sentence_features.shape[1], 0), dtype=np.float32)
    if sentence_features.shape[1]:
        targets = labels.take(sample).multi_hot(label_count)
        directions = label_directions(sentence_features[sample], targets, DIRECTIONS)
    projected = sentence_features @ directions
    # Token ids are sorted by descending frequency, so the most frequent tokens are used.
    token_count = min(len(kinds), MAX_TOKENS, MAX_TRAINING_WEIGHTS // max(label_count, 1))
    tokens, models, solver = distinct_tokens(corpus.tokens.take(rows), token_count), {}, ""
    is_context = kinds[tokens.values] >= CONTEXT
    label_counts = np.bincount(labels.values, minlength=label_count)
    for form in FORMS if is_context.any() else FORMS[:1]:
        form_tokens = tokens if form == FORMS[1] else tokens.where(~is_context)
        idf = inverse_frequencies(form_tokens, token_count).astype(np.float16)
        inputs = _join_features(form_tokens, kinds, idf, projected)
        svms, solver = fit_svms(inputs, labels, label_count, epochs=PASSES, memory_bytes=MEMORY_BYTES)
        models[form] = _compress(svms, idf, directions, label_counts)
    return LinearPart(corpus.label_names, models), solver


def _join_features(tokens: Ragged, kinds: np.ndarray, idf: np.ndarray, projected: np.ndarray) -> Any:
    """Returns the token features of titles followed by ``projected``, as CSR (titles, features).

    Args:
        tokens: Distinct token ids of each title, below ``len(idf)``.
        kinds: Kind of each token id.
        idf: Inverse document frequency of each token.
        projected: Projected sentence features of the titles, (titles, directions).
    """
    from scipy import sparse

    ids, values = weigh_distinct(tokens, kinds, idf)
    token_features = sparse.csr_matrix((values, ids.values, ids.offsets), (len(tokens), len(idf)))
    return sparse.hstack([token_features, sparse.csr_matrix(projected)]).tocsr()


def _compress(
    svms: OnlineSvm, idf: np.ndarray, directions: np.ndarray, label_counts: np.ndarray
) -> FormModel:
    """Compresses SVMs: keeps the MAX_WEIGHTS largest weights of tokens, and rounds them to 8 bits.

    ``label_counts`` is the number of training titles of each label.
    """
    weights, magnitudes = svms.weights[: len(idf)], np.abs(svms.weights[: len(idf)])
    scales = (magnitudes.max(axis=0, initial=0) / 127).astype(np.float32)
    rows, columns = np.divmod(_find_largest(magnitudes.ravel(), MAX_WEIGHTS), len(scales))
    is_nonzero = magnitudes[rows, columns] > scales[columns] / 2  # after rounding to 8 bits
    rows, columns = rows[is_nonzero], columns[is_nonzero]
    return FormModel(
        idf=idf,
        offsets=offsets_of(np.bincount(rows, minlength=len(idf))).astype(np.uint32),
        labels=columns.astype(np.uint16),
        weights=np.rint(weights[rows, columns] / scales[columns]).astype(np.int8),
        scales=scales,
        directions=directions,
        dense_weights=svms.weights[len(idf) :].copy(),
        intercepts=np.where(label_counts > 0, svms.intercepts, -np.inf).astype(np.float32),
    )


def _find_largest(magnitudes: np.ndarray, count: int) -> np.ndarray:
    """Returns the positions of the largest float32 magnitudes: at most ``count``, and nearly as many."""
    sample = magnitudes[:: max(1, len(magnitudes) // 100_000)]
    lower_bound = np.quantile(sample, max(0, 1 - 1.1 * count / len(magnitudes))) if len(sample) else 0
    positions = np.flatnonzero(magnitudes >= lower_bound)  # about 1.1 · count positions
    # Positive floats are compared by the upper half of their bits, which has the same order as the floats.
    # np.partition takes ten times as long.
    upper_bits = magnitudes[positions].view(np.uint32) >> 16
    counts = np.cumsum(np.bincount(upper_bits)[::-1])[::-1]  # number of magnitudes with at least these bits
    return positions[upper_bits >= np.searchsorted(-counts, -count)]
