"""Which rows are within a cosine of which: the kernel's radius form, tile by tile, exact as float64 would decide.

A product in float32 is off by some 2.5e-7, enough to move a pair across the threshold. Pairs closer to it than the
tolerance are decided again in float64, norms included. Memory: one tile of ``SIDE`` x ``SIDE`` float32 and three masks
of it (7 MiB), and the pairs decided in float64, whatever the number of titles.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from tasks.neighbours.similarity import known_rows, product_tolerance

SIDE = 1_024  # rows and columns of a tile: its product stays in the processor's cache
PAIRS_AT_ONCE = 16_384  # pairs decided in float64 together: 32 MiB at 128 dimensions
ROUNDING = 1e-12  # a cosine this much below the threshold still counts: float64's own error


def tiles_within(vectors: np.ndarray, minimum_cosine: float, *, device: str | torch.device = "cpu") -> Iterator[tuple[int, int, np.ndarray]]:
    """Yields the comparison of all rows with all rows in square tiles, those on and above the diagonal only.

    Args:
        vectors: float32, shape (titles, dim), unit norm.
        minimum_cosine: Least cosine that counts as within.
        device: Where the products are computed.

    Yields:
        First row and first column of the tile (equal on the diagonal), and its mask: bool, shape (rows, columns), valid
        until the next tile.
    """
    rows = torch.from_numpy(np.ascontiguousarray(vectors, dtype=np.float32)).to(device)
    room = torch.empty(SIDE * SIDE, device=device)
    masks = np.empty((2, SIDE * SIDE), dtype=bool)
    tolerance = product_tolerance()
    for top in range(0, len(rows), SIDE):
        part = rows[top : top + SIDE]
        for left in range(top, len(rows), SIDE):
            other = rows[left : left + SIDE]
            size = len(part) * len(other)
            tile = torch.mm(part, other.T, out=room[:size].view(len(part), -1)).cpu().numpy()
            perhaps, surely = (masks[place, :size].reshape(tile.shape) for place in (0, 1))
            np.greater_equal(tile, np.float32(minimum_cosine - tolerance), out=perhaps)
            np.greater_equal(tile, np.float32(minimum_cosine + tolerance), out=surely)  # .2 ns an entry; torch takes .4
            if np.count_nonzero(perhaps) != np.count_nonzero(surely):
                pairs = np.nonzero(perhaps ^ surely)
                for start in range(0, len(pairs[0]), PAIRS_AT_ONCE):
                    here, there = (torch.from_numpy(axis[start : start + PAIRS_AT_ONCE]) for axis in pairs)
                    within = exact_cosines(part[here], other[there]) >= minimum_cosine - ROUNDING
                    surely[here.numpy(), there.numpy()] = within.cpu().numpy()
            yield top, left, surely


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
    for top, left, mask in tiles_within(vectors[known], minimum_cosine, device=device):
        found[top : top + mask.shape[0]] += np.add.reduce(mask.view(np.uint8), axis=1, dtype=np.uint16)  # 0.08 ns an entry; count_nonzero takes 0.3
        if left > top:
            found[left : left + mask.shape[1]] += np.add.reduce(mask.view(np.uint8), axis=0, dtype=np.uint16)
    counts = np.zeros(len(vectors), dtype=np.int64)
    counts[known] = found
    return counts
