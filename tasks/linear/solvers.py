"""Trains linear SVMs in memory or, if the samples need too much memory, from disk.

In memory, ``OnlineSvm`` makes a fixed number of passes over the samples for all labels together. From disk,
the dual cached SVM trains one label after the other until the relative duality gap is within a tolerance.
Both approach the same solution.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from storage.arrays import Ragged, row_blocks
from tasks.linear.svm import UNTRAINED_INTERCEPT, OnlineSvm


def fit_svms(
    rows: Any,
    labels: Ragged,
    label_count: int,
    *,
    cost: float = 0.2,
    epochs: int = 4,
    seed: int = 0,
    memory_bytes: int,
) -> tuple[OnlineSvm, str]:
    """Trains a linear SVM per label. Returns the SVMs and the name of the solver.

    Args:
        rows: scipy CSR matrix (samples, features).
        labels: Label ids of each sample.
        label_count: Number of labels.
        cost: C, the weight of a violated margin.
        epochs: Passes over samples in memory. Samples on disk are read until a tolerance is reached.
        seed: Seed of the order in which samples are visited.
        memory_bytes: Maximum memory for samples and dual variables. If they need more, the solver reads the
            samples from disk.
    """
    if rows.data.nbytes + rows.indices.nbytes + 4 * rows.shape[0] * label_count > memory_bytes:
        svms = fit_from_disk(rows, labels, label_count, cost=cost, memory_bytes=memory_bytes, seed=seed)
        return svms, "the dual cached SVM from disk"
    svms = OnlineSvm(rows.shape[1], label_count, cost=cost, epochs=epochs, seed=seed)
    return svms.partial_fit(rows, labels), "the online SVM in memory"


def fit_from_disk(
    rows: Any, labels: Ragged, label_count: int, *, cost: float, memory_bytes: int, seed: int = 0
) -> OnlineSvm:
    """Trains one SVM per label from a temporary file and returns them as an ``OnlineSvm``.

    The arguments are those of ``fit_svms``, but ``memory_bytes`` is the memory for cached samples and
    prefetched blocks; at least the size of three blocks is used.
    """
    from tasks.linear.blocks import BLOCK_BYTES, PREFETCH_BLOCKS, write_blocks
    from tasks.linear.dual_cached import DualCachedSVM  # imports numba

    count, features = rows.shape
    model = OnlineSvm(features, label_count, cost=cost, seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        batches = (
            (rows[batch], Ragged.from_rows([[]] * rows[batch].shape[0])) for batch in row_blocks(count)
        )
        block_bytes = min(BLOCK_BYTES, max(memory_bytes // (2 * PREFETCH_BLOCKS), 1))
        blocks = write_blocks(Path(folder) / "samples", batches, features, block_bytes)
        cache_bytes = max(memory_bytes, (PREFETCH_BLOCKS + 1) * blocks.largest)
        for label in np.unique(labels.values):
            signs = np.full(count, -1, dtype=np.int8)
            signs[labels.row_ids[labels.values == label]] = 1
            svm = DualCachedSVM(cost, squared=True, prior=UNTRAINED_INTERCEPT)
            for _ in svm.fit(blocks.relabel(signs), cache_bytes=cache_bytes, seed=seed):
                pass
            model.weights[:, label], model.intercepts[label] = svm.weights[:, 0], svm.intercepts[0]
    model.seen = count
    return model
