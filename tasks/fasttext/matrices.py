"""Reads matrices of fastText files as memory maps: dense (.bin) or product-quantised (.ftz).

    dense:     int64 rows, columns; float32 (rows × columns)
    quantised: uint8 qnorm; int64 rows, columns; int32 codes; uint8 (codes); quantiser;
               if qnorm: uint8 (rows), quantiser of one dimension
    quantiser: int32 dim blocks width last; float32 (dim × 256): centroids, block by block

A block is a range of ``width`` columns, or ``last`` columns in the last block. A row of a quantised matrix
has one code per block, which selects one of 256 centroids. The row is the concatenation of the selected
centroids. If norms are quantised separately, the row is multiplied by its norm.

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
    """Matrix of float32 rows in a memory map, viewed as bytes.

    Floats in the file may be misaligned. From a misaligned float array, NumPy would copy all rows.
    """

    codes: np.ndarray  # uint8 (rows, 4 · dim), bytes of the float32 values of each row

    def take(self, ids: np.ndarray) -> Float32[np.ndarray, "ids dim"]:
        """Returns the rows with the indices ``ids``."""
        return self.codes.take(ids, axis=0).view("<f4")


@dataclass(frozen=True, eq=False)
class QuantisedMatrix:
    """Product-quantised matrix: each row is stored as the indices of its centroids."""

    codes: np.ndarray  # uint8 (rows, blocks), index of the centroid of each row and block
    centroids: list[np.ndarray]  # centroids of each block, float32 (256, width)
    norm_codes: np.ndarray | None  # uint8 (rows,), index in ``norms``; None: rows contain their norms
    norms: np.ndarray  # float32 (256,)

    def take(self, ids: np.ndarray) -> Float32[np.ndarray, "ids dim"]:
        """Returns the rows with the indices ``ids``."""
        codes = self.codes.take(ids, axis=0)
        blocks = [centroids[codes[:, block]] for block, centroids in enumerate(self.centroids)]
        rows = np.concatenate(blocks, axis=1)
        return rows if self.norm_codes is None else rows * self.norms[self.norm_codes[ids]][:, None]


Matrix = DenseMatrix | QuantisedMatrix


def add_rows(
    take: Callable[[np.ndarray], np.ndarray], ids: Ragged, sums: Float32[np.ndarray, "words dim"]
) -> Float32[np.ndarray, "words dim"]:
    """Adds the rows of each word to its sum, bitwise equal to a loop over the rows of the word.

    Words are sorted by descending number of rows. Iteration n adds the n-th row of all words that have at
    least n rows.

    Args:
        take: Function that returns the rows with given indices.
        ids: Row indices of each word.
        sums: Start of the sum of each word.
    """
    order = np.argsort(-ids.lengths, kind="stable")
    starts, negative_lengths = ids.offsets[:-1][order], -ids.lengths[order]
    sorted_sums = sums[order]
    for position in range(int(ids.lengths.max(initial=0))):
        count = int(np.searchsorted(negative_lengths, -position, side="left"))
        sorted_sums[:count] += take(ids.values[starts[:count] + position])
    new_sums = np.empty_like(sums)
    new_sums[order] = sorted_sums
    return new_sums


def mean_rows(
    take: Callable[[np.ndarray], np.ndarray], ids: Ragged, dim: int
) -> Float32[np.ndarray, "words dim"]:
    """Returns the mean of the rows of each word: their sum times float32(1 / count), as in fastText.

    The mean is zero for a word without rows. See ``add_rows`` for ``take`` and ``ids``; ``dim`` is the number
    of columns.
    """
    sums = add_rows(take, ids, np.zeros((len(ids), dim), dtype=np.float32))
    return sums * (1.0 / np.maximum(ids.lengths, 1)).astype(np.float32)[:, None]


def read_matrix(cursor: Cursor, matrix_name: str, *, rows: int, dim: int, quantised: bool) -> Matrix:
    """Reads a matrix of a fastText file; ``matrix_name`` is its name in error messages.

    Raises:
        FastTextError: The matrix in the file has another shape, or its codes are damaged.
    """
    separate_norms = quantised and cursor.read_flag(f"the norms of the {matrix_name} matrix are separate")
    shape = cursor.read("<2q", f"the shape of the {matrix_name} matrix")
    if shape != (rows, dim):
        expected_shape = f"expected {rows} × {dim} from header and dictionary"
        cursor.fail(f"the {matrix_name} matrix is {shape[0]} × {shape[1]}, {expected_shape}", 16)
    if not quantised:
        content = cursor.read_bytes(rows * dim * 4, f"the {matrix_name} matrix of {rows} rows of {dim}")
        return DenseMatrix(content.reshape(rows, -1))
    (size,) = cursor.read("<i", f"the number of codes of the {matrix_name} matrix")
    if size <= 0 or size % rows or size // rows > dim:
        cursor.fail(f"{size} codes for {rows} rows, expected 1 to {dim} codes per row", 4)
    codes = cursor.read_bytes(size, f"{size} codes").reshape(rows, -1)
    centroids = _read_centroids(cursor, f"the {matrix_name} matrix", dim, codes.shape[1])
    if not separate_norms:
        return QuantisedMatrix(codes, centroids, None, np.zeros(0, dtype=np.float32))
    norm_codes = cursor.read_bytes(rows, f"{rows} codes of norms")
    return QuantisedMatrix(codes, centroids, norm_codes, _read_centroids(cursor, "the norms", 1, 1)[0][:, 0])


def _read_centroids(cursor: Cursor, matrix_name: str, dim: int, block_count: int) -> list[np.ndarray]:
    header = cursor.read("<4i", f"the quantiser of {matrix_name}")
    width, last_width = header[2], dim - (block_count - 1) * header[2]
    if width < 1 or -(-dim // width) != block_count or header != (dim, block_count, width, last_width):
        expected = f"{dim}, {block_count}, and widths that add up to {dim}"
        cursor.fail(
            f"the quantiser of {matrix_name} has dim, blocks, width, last {header}: expected {expected}", 16
        )
    centroids = np.frombuffer(
        cursor.read_bytes(dim * 256 * 4, f"the centroids of {matrix_name}").tobytes(), dtype="<f4"
    )
    full_blocks, last_block = np.split(centroids, [(block_count - 1) * 256 * width])
    return [*full_blocks.reshape(block_count - 1, 256, width), last_block.reshape(256, last_width)]
