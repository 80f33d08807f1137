"""Validates sparse samples and labels, because the compiled loops do not check array bounds."""

from typing import Any

import numpy as np

from storage.arrays import Ragged


def validate_rows(rows: Any, features: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Validates a scipy CSR matrix and returns its offsets, feature ids and values.

    Args:
        rows: CSR matrix. Rows may be empty; duplicate ids in a row are summed.
        features: Number of features; None: the number of columns of the matrix.

    Returns:
        Offsets int64 (rows + 1,), feature ids int32 (values,), values float32 (values,).

    Raises:
        ValueError: A value is not finite or a feature id is out of range; the message names the row.
    """
    if getattr(rows, "format", None) != "csr":
        raise ValueError(f"samples must be a scipy CSR matrix, got {type(rows).__name__}; call tocsr()")
    if not rows.has_canonical_format:  # the loops compute the squared norm of a row from its values
        rows = rows.copy()
        rows.sum_duplicates()
    offsets, ids, values = (
        np.asarray(array) for array in (rows.indptr.astype(np.int64), rows.indices, rows.data)
    )
    width = rows.shape[1] if features is None else features
    if len(ids) and (ids.min() < 0 or ids.max() >= width):
        errors = np.flatnonzero((ids < 0) | (ids >= width))
        raise ValueError(
            f"row {_row_of(offsets, errors[0])} holds feature {ids[errors[0]]}; there are features 0 to "
            f"{width - 1}"
        )
    with np.errstate(over="ignore"):
        values = values.astype(np.float32, copy=False)
    if not np.isfinite(values).all():
        index = np.flatnonzero(~np.isfinite(values))[0]
        raise ValueError(
            f"row {_row_of(offsets, index)} holds {rows.data[index]} for feature {ids[index]}; expected a "
            "finite float32"
        )
    return offsets, ids.astype(np.int32, copy=False), values


def validate_labels(labels: Ragged, rows: int, label_count: int) -> tuple[np.ndarray, np.ndarray]:
    """Validates the label ids of samples and returns their offsets, int64 (rows + 1,), and the ids, int32.

    A sample may have no label.

    Raises:
        ValueError: ``labels`` has not ``rows`` rows, or an id is not in ``range(label_count)``.
    """
    if len(labels) != rows:
        raise ValueError(f"{len(labels)} rows of labels for {rows} samples; give one row per sample")
    errors = np.flatnonzero((labels.values < 0) | (labels.values >= label_count))
    if len(errors):
        raise ValueError(
            f"row {_row_of(labels.offsets, errors[0])} holds label {labels.values[errors[0]]}; there are "
            f"labels 0 to {label_count - 1}"
        )
    return np.asarray(labels.offsets, dtype=np.int64), np.asarray(labels.values, dtype=np.int32)


def _row_of(offsets: np.ndarray, index: int) -> int:
    """Returns the number of the row that contains the value at position ``index``."""
    return int(np.searchsorted(offsets, index, side="right")) - 1
