"""The best few of each row, fed tile by tile: what is at or below a row's worst kept value is never looked at again.

Choosing the best k of every tile would cost more than the products themselves (torch's topk: 5 ns a value, the product
of 100 dimensions 2 ns). Against a threshold a row, most values fall at one comparison (.3 ns with the search for the
hits); a row of n random values has some k log(n / k) hits in all. Hits wait in the row's spare room and are sorted out
when it is full, which raises the threshold.
"""

from __future__ import annotations

import numpy as np
import torch

ROOM = 32  # places for hits beside the kept ones


class RunningTop:
    """The ``wanted`` greatest values of each row and their ids; of equal values at the edge any may be kept.

    Args:
        rows: Number of rows.
        wanted: Values kept a row.
    """

    def __init__(self, rows: int, wanted: int) -> None:
        self.wanted = wanted
        self.values = np.full((rows, wanted + max(ROOM, wanted)), -np.inf, dtype=np.float32)
        self.ids = np.full(self.values.shape, -1, dtype=np.int32)
        self.filled = np.zeros(rows, dtype=np.int64)
        self.threshold = np.full(rows, -np.inf, dtype=np.float32)  # what is not greater is not kept

    def begin(self, first: int, tile: torch.Tensor, first_id: int) -> None:
        """Takes the best of a first tile, for rows that hold nothing yet.

        Args:
            first: The tile's first row; they follow each other.
            tile: float32, shape (rows, columns); minus infinity is never kept.
            first_id: Id of the tile's first column.
        """
        kept = min(self.wanted, tile.shape[1])
        values, places = tile.topk(kept, dim=1)
        rows = slice(first, first + len(tile))
        found = values.numpy()
        self.values[rows, :kept] = found
        self.ids[rows, :kept] = np.where(found > -np.inf, places.numpy() + first_id, -1)
        self.filled[rows] = (found > -np.inf).sum(axis=1)
        self.threshold[rows] = np.where(self.filled[rows] == self.wanted, found[:, -1], -np.inf)

    def offer(self, first: int, rows: np.ndarray, ids: np.ndarray, values: np.ndarray) -> None:
        """Takes hits: values above their row's threshold.

        Args:
            first: The first of the rows that hits may be of.
            rows: Integers, ascending, counted from ``first``, shape (hits,).
            ids: Integers, shape (hits,).
            values: float32, shape (hits,).
        """
        width = self.values.shape[1]
        while len(rows):
            counts = np.bincount(rows)
            filled = self.filled[first : first + len(counts)]
            crowded = np.flatnonzero(filled + counts > width)
            if len(crowded):
                self.settle(crowded + first)
                above = values > self.threshold[first : first + len(counts)][rows]
                rows, ids, values = rows[above], ids[above], values[above]
                counts = np.bincount(rows, minlength=len(counts))
            slots = np.arange(len(rows)) + (filled - np.cumsum(counts) + counts)[rows]
            rest = None
            if len(crowded) and (filled + counts).max() > width:  # even so more than there is room for: the next round takes them
                fits = slots < width
                rest = (rows[~fits], ids[~fits], values[~fits])
                rows, ids, values, slots = rows[fits], ids[fits], values[fits], slots[fits]
                counts = np.bincount(rows, minlength=len(counts))
            places = (rows + first) * width + slots
            self.values.reshape(-1)[places] = values
            self.ids.reshape(-1)[places] = ids
            filled += counts
            if rest is None:
                return
            rows, ids, values = rest

    def settle(self, rows: np.ndarray) -> None:
        """Sorts these rows: the wanted ones, falling, then empty places."""
        values, places = torch.from_numpy(self.values[rows]).topk(self.wanted, dim=1)
        self.ids[rows, : self.wanted] = np.take_along_axis(self.ids[rows], places.numpy(), axis=1)
        self.values[rows, : self.wanted] = values.numpy()
        self.values[rows, self.wanted :] = -np.inf
        self.filled[rows] = np.minimum(self.filled[rows], self.wanted)
        self.threshold[rows] = values[:, -1].numpy()


def hits_by_row(tile: np.ndarray, threshold: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows (ascending), columns and values of a tile above the threshold of their row; ``mask`` is room of its shape."""
    flat = np.flatnonzero(np.greater(tile, threshold[:, None], out=mask))
    rows = flat // tile.shape[1]
    return rows, flat - rows * tile.shape[1], tile.reshape(-1)[flat]


def hits_by_column(tile: np.ndarray, threshold: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same for the tile turned round: columns (ascending), rows and values above the threshold of their column."""
    flat = np.flatnonzero(np.greater(tile, threshold, out=mask))
    rows = flat // tile.shape[1]
    columns = flat - rows * tile.shape[1]
    order = np.argsort(columns.astype(np.uint16), kind="stable")  # 16 bits: sorted by radix
    return columns[order], rows[order], tile.reshape(-1)[flat[order]]
