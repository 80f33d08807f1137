"""k-NN on TF-IDF: what similarity of spelling alone knows; votes are counted as for our vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import scipy.sparse as sparse

from tasks.baselines.predictions import LabelledTitles, Predictions
from tasks.baselines.tfidf import FittedTfidf, TfidfFeatures
from tasks.baselines.vote import vote
from tasks.form import FORM

BLOCK_BYTES = 64 << 20  # of one dense block of similarities


@dataclass(frozen=True, kw_only=True)
class TfidfKnn:
    """The k training titles of greatest cosine vote."""

    __pydantic_config__ = FORM

    name: Literal["tfidf_knn"] = "tfidf_knn"
    k: int = field(default=10, metadata={"description": "Neighbours that vote.", "ge": 1})
    features: TfidfFeatures = field(default=TfidfFeatures(), metadata={"description": "What is compared."})

    def fit(self, training: LabelledTitles) -> FittedTfidfKnn:
        """Indexes the training titles.

        Raises:
            ValueError: No training title holds a feature.
        """
        features, base = self.features.fit_transform(training.texts)
        return FittedTfidfKnn(features, _divide_by_norm_(base), training, self.k)


@dataclass(frozen=True)
class FittedTfidfKnn:
    """Training titles and their features, float32, shape (titles, features), rows of unit norm."""

    features: FittedTfidf
    base: sparse.csr_matrix
    training: LabelledTitles
    k: int

    def predict(self, texts: Sequence[str]) -> Predictions:
        """Lets each title's neighbours vote; titles that share no feature with it are no neighbours."""
        neighbours, similarities = top_by_product(_divide_by_norm_(self.features.transform(texts)), self.base, self.k)
        return vote(neighbours, similarities, self.training.labels, self.training.frequency)


def _divide_by_norm_(features: sparse.csr_matrix) -> sparse.csr_matrix:
    """Divides the rows by their norms, in place; zero rows stay zero."""
    norms = np.sqrt(np.asarray(features.multiply(features).sum(axis=1)).ravel())
    features.data /= np.repeat(np.where(norms > 0, norms, 1), np.diff(features.indptr))
    return features


def top_by_product(queries: sparse.csr_matrix, base: sparse.csr_matrix, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k rows of ``base`` of greatest positive dot product with each query; equal ones in the order of their ids.

    Args:
        queries: Shape (queries, features).
        base: Shape (titles, features).
        k: At least 1.

    Returns:
        Ids, int64, shape (queries, k), -1 where fewer products are positive; products, float32, same shape, 0 there.
    """
    query_count, base_count = queries.get_shape()[0], base.get_shape()[0]
    ids = np.full((query_count, k), -1, dtype=np.int64)
    products = np.zeros((query_count, k), dtype=np.float32)
    width = min(k, base_count)
    if not width:
        return ids, products
    transposed = base.T.tocsr()
    block = max(1, BLOCK_BYTES // (4 * base_count))
    for start in range(0, query_count, block):
        dense = (queries[start : start + block] @ transposed).toarray()  # (block, titles)
        chosen = np.sort(np.argpartition(-dense, width - 1, axis=1)[:, :width], axis=1)
        values = np.take_along_axis(dense, chosen, axis=1)
        order = np.argsort(-values, axis=1, kind="stable")
        chosen, values = np.take_along_axis(chosen, order, axis=1), np.take_along_axis(values, order, axis=1)
        ids[start : start + block, :width] = np.where(values > 0, chosen, -1)
        products[start : start + block, :width] = np.clip(values, 0, 1)
    return ids, products
