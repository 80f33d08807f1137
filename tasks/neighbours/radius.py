"""Which rows are within a cosine of which: the kernel's radius form, tile by tile, exact as float64 would decide.

A product in float32 is off by some 2.5e-7, enough to move a pair across the threshold. Pairs closer to it than the
tolerance are decided again in float64, norms included. Memory: one tile of ``SIDE`` x ``SIDE`` float32 and a mask of it
(5 MiB), its pairs (16 bytes each, 16 MiB at most) and those decided in float64, whatever the number of titles.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from tasks.neighbours.settling import product_tolerance
from tasks.neighbours.similarity import known_rows

SIDE = 1_024  # rows and columns of a tile: its product stays in the processor's cache
PAIRS_AT_ONCE = 16_384  # pairs decided in float64 together: 32 MiB at 128 dimensions
ROUNDING = 1e-12  # a cosine this much below the threshold still counts: float64's own error


def pairs_within(vectors: np.ndarray, minimum_cosine: float, *, device: str | torch.device = "cpu") -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
    """Yields the pairs of all rows with all rows in square tiles, those on and above the diagonal only.

    Args:
        vectors: float32, shape (titles, dim), unit norm.
        minimum_cosine: Least cosine that counts as within.
        device: Where the products are computed.

    Yields:
        First row and first column of the tile (equal on the diagonal), and within it row and column of each pair: int64,
        ordered by row, then column.
    """
    rows = torch.from_numpy(np.ascontiguousarray(vectors, dtype=np.float32)).to(device)
    room, mask = torch.empty(SIDE * SIDE, device=device), np.zeros(-(-SIDE * SIDE // 8) * 8, dtype=bool)
    tolerance = product_tolerance()
    for top in range(0, len(rows), SIDE):
        part = rows[top : top + SIDE]
        for left in range(top, len(rows), SIDE):
            other = rows[left : left + SIDE]
            size = len(part) * len(other)
            tile = torch.mm(part, other.T, out=room[:size].view(len(part), -1)).cpu().numpy().reshape(-1)
            np.greater_equal(tile, np.float32(minimum_cosine - tolerance), out=mask[:size])  # .2 ns an entry; torch takes .4
            mask[size:] = False
            places = _true(mask)
            here, there = np.divmod(places, len(other))
            unsure = np.flatnonzero(tile[places] < np.float32(minimum_cosine + tolerance))
            if len(unsure):
                outside = [
                    some[(exact_cosines(part[here[some]], other[there[some]]) < minimum_cosine - ROUNDING).cpu().numpy()]
                    for some in np.array_split(unsure, -(-len(unsure) // PAIRS_AT_ONCE))
                ]
                here, there = (np.delete(axis, np.concatenate(outside)) for axis in (here, there))
            yield top, left, here, there


def _true(mask: np.ndarray) -> np.ndarray:
    """Where a bool array (a multiple of 8) is true: eight entries at a look, since hardly any are."""
    words = np.flatnonzero(mask.view(np.uint64))
    word, byte = np.nonzero(mask.reshape(-1, 8)[words])
    return words[word] * 8 + byte


def exact_cosines(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Cosines of corresponding rows in float64, norms divided out: shape (pairs,)."""
    left, right = left.double(), right.double()
    return (left * right).sum(1) / (left.norm(dim=1) * right.norm(dim=1))


def count_within(vectors: np.ndarray, minimum_cosine: float, *, device: str | torch.device = "cpu") -> np.ndarray:
    """How many titles are within the cosine of each title, itself included.

    Args:
        vectors: float32, shape (titles, dim), unit norm or zero.
        minimum_cosine: Least cosine that counts as within.
        device: Where the products are computed.

    Returns:
        int64, shape (titles,); 0 for a zero row.
    """
    known = np.flatnonzero(known_rows(vectors))
    found = np.zeros(len(known), dtype=np.int64)
    for top, left, rows, columns in pairs_within(vectors[known], minimum_cosine, device=device):
        size = min(SIDE, len(known) - top), min(SIDE, len(known) - left)
        found[top : top + size[0]] += np.bincount(rows, minlength=size[0])
        if left > top:
            found[left : left + size[1]] += np.bincount(columns, minlength=size[1])
    counts = np.zeros(len(vectors), dtype=np.int64)
    counts[known] = found
    return counts
