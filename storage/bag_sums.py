"""Sums embedding rows per bag (the tokens of a title) in NumPy, for processes that do not import torch."""

import sys

import numpy as np

from storage.shapes import Float32


def sum_rows(
    rows: Float32[np.ndarray, "unique dim"],
    ids: np.ndarray,
    offsets: np.ndarray,
    weights: Float32[np.ndarray, " entries"],
) -> Float32[np.ndarray, "bags dim"]:
    """Computes the weighted sum of the rows of each bag, like ``torch.nn.functional.embedding_bag``.

    Uses torch if the process has already imported it, because torch is 15 times as fast (1.7 instead of 26 ms
    for 4,096 titles with 75 tokens).

    Args:
        rows: Embedding rows.
        ids: Row index of each entry, int (entries,).
        offsets: Bag i has the entries offsets[i] to offsets[i + 1] (exclusive), int (bags + 1,).
        weights: Factor of each entry.
    """
    if (torch := sys.modules.get("torch")) is not None:
        ids, offsets = (array.astype(np.int64, copy=False) for array in (ids, offsets))
        *tensors, factors = map(torch.from_numpy, (ids, rows, offsets, weights))
        options = {"mode": "sum", "include_last_offset": True, "per_sample_weights": factors}
        with torch.inference_mode():
            return torch.nn.functional.embedding_bag(*tensors, **options).numpy()
    sums = np.zeros((len(offsets) - 1, rows.shape[1]), dtype=np.float32)
    offset_list = offsets.tolist()
    for bag_sum, begin, end in zip(sums, offset_list, offset_list[1:], strict=False):
        if begin < end:
            np.dot(weights[begin:end], rows.take(ids[begin:end], axis=0), out=bag_sum)
    return sums
