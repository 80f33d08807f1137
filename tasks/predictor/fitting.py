"""Trains the linear part of the predictor on all labelled training titles of a Corpus."""

import numpy as np

from storage.arrays import Ragged, offsets_of
from storage.formats.corpus import OpenCorpus
from tasks.baselines.inputs import dense_inputs
from tasks.baselines.tfidf import label_directions
from tasks.linear.solvers import fit_svms
from tasks.linear.svm import OnlineSvm
from tasks.predictor.features import distinct_tokens, inverse_frequencies, weigh_distinct
from tasks.predictor.linear_part import FORMS, FormModel, LinearPart
from tasks.text.words import CONTEXT

DIRECTIONS = 32  # directions of sentence features (docs: tasks/baselines/tfidf.py)
MAX_DIRECTION_TITLES = 200_000  # titles from which the directions are computed
# A model has at most 15 MB (linear.safetensors: two forms; 3 bytes per weight and 6 per token).
MAX_WEIGHTS, MAX_TOKENS = 1_250_000, 400_000
MAX_CELLS = 100_000_000  # weights during training: 400 MB
PASSES = 3  # over the titles; 4 are not better: mean accuracy .599 against .601 on US1 and ZA1
MEMORY_BYTES = 1 << 30  # of samples; larger ones are read from disk


def fit_linear_part(corpus: OpenCorpus) -> tuple[LinearPart, str]:
    """Trains the linear part on the labelled training titles; returns it and the name of the solver."""
    rows, label_count = corpus.training, len(corpus.label_names)
    labels, kinds = corpus.labels.take(rows), np.asarray(corpus.kinds)
    dense = dense_inputs(corpus.sentences, corpus.descriptions, rows)
    sample = np.arange(len(rows))
    if len(rows) > MAX_DIRECTION_TITLES:
        sample = np.sort(np.random.default_rng(0).choice(sample, MAX_DIRECTION_TITLES, replace=False))
    directions = np.zeros((dense.shape[1], 0), dtype=np.float32)
    if dense.shape[1]:
        targets = labels.take(sample).multi_hot(label_count)
        directions = label_directions(dense[sample], targets, DIRECTIONS)
    projected = dense @ directions
    # Tokens are sorted by descending frequency, so the first ones are in the most titles.
    token_count = min(len(kinds), MAX_TOKENS, MAX_CELLS // max(label_count, 1))
    tokens, models, solver = distinct_tokens(corpus.tokens.take(rows), token_count), {}, ""
    is_context = kinds[tokens.values] >= CONTEXT
    for form in FORMS if is_context.any() else FORMS[:1]:
        used_tokens = tokens if form == FORMS[1] else tokens.where(~is_context)
        models[form], solver = _fit_form(
            used_tokens, kinds, token_count, projected, directions, labels, label_count
        )
    return LinearPart(corpus.label_names, models), solver


def _fit_form(
    tokens: Ragged,
    kinds: np.ndarray,
    token_count: int,
    projected: np.ndarray,
    directions: np.ndarray,
    labels: Ragged,
    label_count: int,
) -> tuple[FormModel, str]:
    """Trains the linear models of one form (title_only or title_context); returns them and the solver.

    ``tokens`` are distinct in each title. ``projected`` are the sentence features along ``directions``.
    """
    from scipy import sparse

    idf = inverse_frequencies(tokens, token_count).astype(np.float16)
    ids, values = weigh_distinct(tokens, kinds, idf)
    shape = len(tokens), len(idf)
    inputs = sparse.csr_matrix((values, ids.values, ids.offsets), shape)
    inputs = sparse.hstack([inputs, sparse.csr_matrix(projected)]).tocsr()
    svms, solver = fit_svms(inputs, labels, label_count, epochs=PASSES, memory_bytes=MEMORY_BYTES)
    return _compress(svms, idf, directions, np.bincount(labels.values, minlength=label_count)), solver


def _compress(svms: OnlineSvm, idf: np.ndarray, directions: np.ndarray, frequency: np.ndarray) -> FormModel:
    """Returns a model with the MAX_WEIGHTS largest weights of tokens, rounded to 8 bits.

    ``frequency`` is the number of training titles of each label.
    """
    weights, magnitudes = svms.weights[: len(idf)], np.abs(svms.weights[: len(idf)])
    scales = (magnitudes.max(axis=0, initial=0) / 127).astype(np.float32)
    rows, columns = np.divmod(_largest(magnitudes.ravel(), MAX_WEIGHTS), len(scales))
    is_kept = magnitudes[rows, columns] > scales[columns] / 2  # others are 0 in 8 bits
    rows, columns = rows[is_kept], columns[is_kept]
    return FormModel(
        idf=idf,
        offsets=offsets_of(np.bincount(rows, minlength=len(idf))).astype(np.uint32),
        labels=columns.astype(np.uint16),
        weights=np.rint(weights[rows, columns] / scales[columns]).astype(np.int8),
        scales=scales,
        directions=directions,
        dense_weights=svms.weights[len(idf) :].copy(),
        intercepts=np.where(frequency > 0, svms.intercepts, -np.inf).astype(np.float32),
    )


def _largest(magnitudes: np.ndarray, count: int) -> np.ndarray:
    """Returns the positions of at most, and about, the ``count`` largest float32 magnitudes."""
    sample = magnitudes[:: max(1, len(magnitudes) // 100_000)]
    lower_bound = np.quantile(sample, max(0, 1 - 1.1 * count / len(magnitudes))) if len(sample) else 0
    positions = np.flatnonzero(magnitudes >= lower_bound)  # a tenth more than needed
    candidates = magnitudes[positions]
    # The upper half of the bits of positive floats is in the order of the floats; np.partition takes ten
    # times as long.
    upper_bits = candidates.view(np.uint32) >> 16
    counts = np.cumsum(np.bincount(upper_bits)[::-1])[::-1]  # number of weights with at least these bits
    return positions[upper_bits >= np.searchsorted(-counts, -count)]
