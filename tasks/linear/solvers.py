"""Chooses the solver of linear SVMs by the memory that the samples need."""

from typing import Any

from storage.arrays import Ragged
from tasks.linear.svm import OnlineSvm


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
        from tasks.linear.svm_on_disk import fit_from_disk  # imports numba

        svms = fit_from_disk(rows, labels, label_count, cost=cost, memory_bytes=memory_bytes, seed=seed)
        return svms, "the dual cached SVM from disk"
    svms = OnlineSvm(rows.shape[1], label_count, cost=cost, epochs=epochs, seed=seed)
    return svms.partial_fit(rows, labels), "the online SVM in memory"
