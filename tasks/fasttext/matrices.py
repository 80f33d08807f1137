"""fastText's matrices, mapped: dense ones, and product-quantised ones (.ftz).

    dense:     int64 rows, columns; float32 (rows × columns)
    quantised: uint8 qnorm; int64 rows, columns; int32 codes; uint8 (codes); quantiser;
               if qnorm: uint8 (rows), quantiser of one dimension
    quantiser: int32 dim blocks width last; float32 (dim × 256): centroids, block by block

A row of a quantised matrix is its blocks' centroids, times the centroid of its norm.

References:
    Joulin, Grave, Bojanowski, Douze, Jégou, Mikolov. FastText.zip. 2016. https://arxiv.org/abs/1612.03651.
    Layout: fastText 0.9.2, Matrix::load, QuantMatrix::load, ProductQuantizer::load.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from storage.arrays import Ragged
from storage.shapes import Float32
from tasks.fasttext.layout import Cursor


@dataclass(frozen=True, eq=False)
class DenseMatrix:
    """Rows of float32 as they lie in the file: uint8 (rows, 4 · dim), since floats in the file stand at any
    offset and NumPy would first copy a misaligned array as a whole.
    """

    codes: np.ndarray

    def take(self, ids: np.ndarray) -> Float32[np.ndarray, "ids dim"]:
        """Rows by number."""
        return self.codes.take(ids, axis=0).view("<f4")


@dataclass(frozen=True, eq=False)
class QuantisedMatrix:
    """Product-quantised rows."""

    codes: np.ndarray  # uint8 (rows, blocks)
    centroids: list[np.ndarray]  # of each block, float32 (256, width)
    norm_codes: np.ndarray | None  # uint8 (rows,), where norms are apart
    norms: np.ndarray  # float32 (256,)

    def take(self, ids: np.ndarray) -> Float32[np.ndarray, "ids dim"]:
        """Rows by number."""
        codes = self.codes.take(ids, axis=0)
        rows = np.concatenate([own[codes[:, block]] for block, own in enumerate(self.centroids)], axis=1)
        return rows if self.norm_codes is None else rows * self.norms[self.norm_codes[ids]][:, None]


Matrix = DenseMatrix | QuantisedMatrix


def sum_rows(take: Callable[[np.ndarray], np.ndarray], ids: Ragged, dim: int) -> np.ndarray:
    """Sums of rows, float32 (bags, dim), in their order: the bits of a loop over one bag after the other.

    All bags advance together, the longest first, so that those that still have a row are a prefix.
    """
    order = np.argsort(-ids.lengths, kind="stable")
    starts, falling = ids.offsets[:-1][order], -ids.lengths[order]
    sums = np.zeros((len(ids), dim), dtype=np.float32)
    for position in range(int(ids.lengths.max(initial=0))):
        count = int(np.searchsorted(falling, -position, side="left"))
        sums[:count] += take(ids.values[starts[:count] + position])
    result = np.empty_like(sums)
    result[order] = sums
    return result


def mean_rows(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Sums divided as fastText does: times float32(1 / n); a sum of none stays."""
    return sums * (1.0 / np.maximum(counts, 1)).astype(np.float32)[:, None]


def read_matrix(cursor: Cursor, what: str, *, rows: int, dim: int, quantised: bool) -> Matrix:
    """Reads a matrix whose shape is known from elsewhere; FastTextError if it has another."""
    apart = quantised and cursor.read_flag(f"the norms of the {what} matrix are apart")
    found = cursor.read("<2q", f"the shape of the {what} matrix")
    if found != (rows, dim):
        asked = f"the header and the dictionary ask for {rows} of {dim}"
        cursor.fail(f"the {what} matrix has {found[0]} rows of {found[1]}, {asked}", 16)
    if not quantised:
        taken = cursor.take(rows * dim * 4, f"the {what} matrix of {rows} rows of {dim}")
        return DenseMatrix(taken.reshape(rows, -1))
    (size,) = cursor.read("<i", f"the number of codes of the {what} matrix")
    if size <= 0 or size % rows or size // rows > dim:
        expected = f"a multiple of the rows, 1 to {dim} codes each"
        cursor.fail(f"{size} codes for {rows} rows of {dim}: it should be {expected}", 4)
    codes = cursor.take(size, f"{size} codes").reshape(rows, -1)
    centroids = _read_centroids(cursor, f"the {what} matrix", dim, codes.shape[1])
    if not apart:
        return QuantisedMatrix(codes, centroids, None, np.zeros(0, dtype=np.float32))
    norm_codes = cursor.take(rows, f"{rows} codes of norms")
    return QuantisedMatrix(codes, centroids, norm_codes, _read_centroids(cursor, "the norms", 1, 1)[0][:, 0])


def _read_centroids(cursor: Cursor, what: str, dim: int, blocks: int) -> list[np.ndarray]:
    found = cursor.read("<4i", f"the quantiser of {what}")
    width, last = found[2], dim - (blocks - 1) * found[2]
    if width < 1 or -(-dim // width) != blocks or found != (dim, blocks, width, last):
        expected = f"{dim}, {blocks} and widths that add up to {dim}"
        cursor.fail(f"the quantiser of {what} has dim, blocks, width, last {found}: expected {expected}", 16)
    taken = np.frombuffer(cursor.take(dim * 256 * 4, f"the centroids of {what}").tobytes(), dtype="<f4")
    head, tail = np.split(taken, [(blocks - 1) * 256 * width])
    return [*head.reshape(blocks - 1, 256, width), tail.reshape(256, last)]
