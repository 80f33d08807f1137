"""Trains the SVMs of ``svm.py`` on samples that are read from disk, one label after the other.

The dual cached SVM trains each label until the relative duality gap is within a tolerance. ``OnlineSvm``
makes a fixed number of passes over the samples for all labels together. Both approach the same solution.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from storage.arrays import Ragged, row_blocks
from tasks.linear.blocks import BLOCK_BYTES, PREFETCH_BLOCKS, write_blocks
from tasks.linear.dual_cached import DualCachedSVM
from tasks.linear.svm import UNTRAINED_INTERCEPT, OnlineSvm


def fit_from_disk(
    rows: Any, labels: Ragged, label_count: int, *, cost: float, memory_bytes: int, seed: int = 0
) -> OnlineSvm:
    """Trains one SVM per label and returns them as an ``OnlineSvm``.

    Args:
        rows: scipy CSR matrix (samples, features), which is written to a temporary folder.
        labels: Label ids of each sample.
        label_count: Number of labels.
        cost: C, the weight of a violated margin.
        memory_bytes: Memory for cached samples and prefetched blocks; at least the size of three blocks is
            used.
        seed: Seed of the order in which samples are visited.
    """
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
