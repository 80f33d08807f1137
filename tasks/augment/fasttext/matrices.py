"""fastText's matrices, mapped: dense ones, and product-quantised ones (.ftz).

    dense:     int64 rows, columns; float32 (rows × columns)
    quantised: uint8 qnorm; int64 rows, columns; int32 codes; uint8 (codes); quantiser; if qnorm: uint8 (rows), quantiser of one dimension
    quantiser: int32 dim blocks width last; float32 (dim × 256): centroids, block by block

A row of a quantised matrix is its blocks' centroids, times the centroid of its norm.

References:
    Joulin, Grave, Bojanowski, Douze, Jégou, Mikolov. FastText.zip. 2016. https://arxiv.org/abs/1612.03651. Layout: fastText 0.9.2,
    Matrix::load, QuantMatrix::load, ProductQuantizer::load.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from storage.arrays import Ragged
from tasks.augment.fasttext.layout import Cursor

_CENTROIDS = 256


@dataclass(frozen=True)
class Dense:
    """Rows of float32 as they lie in the file.

    Attributes:
        codes: uint8 (rows, 4 · dim). As bytes, since floats in the file stand at any offset: NumPy would first copy a
            misaligned array as a whole.
    """

    codes: np.ndarray

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, ids: np.ndarray) -> np.ndarray:
        """Rows by number: float32 (ids, dim)."""
        return self.codes.take(ids, axis=0).view("<f4")


@dataclass(frozen=True)
class Quantiser:
    """Centroids, float32: (blocks − 1, 256, width), and those of the last block (256, last)."""

    centroids: np.ndarray
    last: np.ndarray

    @property
    def blocks(self) -> int:
        """Codes a row."""
        return len(self.centroids) + 1

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Codes (rows, blocks) to float32 (rows, dim)."""
        parts = [own[codes[:, block]] for block, own in enumerate(self.centroids)]
        return np.concatenate([*parts, self.last[codes[:, -1]]], axis=1)


@dataclass(frozen=True)
class Quantised:
    """Product-quantised rows.

    Attributes:
        codes: uint8 (rows, blocks).
        quantiser: Of the rows, or of the unit rows where norms are apart.
        norm_codes: uint8 (rows,), or None.
        norms: float32 (256,), or None.
    """

    codes: np.ndarray
    quantiser: Quantiser
    norm_codes: np.ndarray | None
    norms: np.ndarray | None

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, ids: np.ndarray) -> np.ndarray:
        """Rows by number: float32 (ids, dim)."""
        rows = self.quantiser.decode(self.codes.take(ids, axis=0))
        return rows if self.norm_codes is None or self.norms is None else rows * self.norms[self.norm_codes[ids]][:, None]


Matrix = Dense | Quantised


class Rows(Protocol):
    """Rows that can be taken by number."""

    def take(self, ids: np.ndarray) -> np.ndarray:
        """float32 (ids, dim)."""
        ...


def sum_rows(matrix: Rows, ids: Ragged, dim: int) -> np.ndarray:
    """Sums of rows, in float32 and in their order, as a loop over one bag after the other gives them to the bit.

    All bags advance together, the longest first, so that those that still have a row are a prefix.

    Returns:
        float32 (bags, dim).
    """
    order = np.argsort(-ids.lengths, kind="stable")
    starts, falling = ids.offsets[:-1][order], -ids.lengths[order]
    sums = np.zeros((len(ids), dim), dtype=np.float32)
    for position in range(int(-falling[0]) if len(ids) else 0):
        count = int(np.searchsorted(falling, -position, side="left"))
        sums[:count] += matrix.take(ids.values[starts[:count] + position])
    result = np.empty_like(sums)
    result[order] = sums
    return result


def read_matrix(cursor: Cursor, what: str, *, rows: int, dim: int, quantised: bool) -> Matrix:
    """Reads a matrix whose shape is known from elsewhere.

    Raises:
        FastTextError: Another shape, or the file ends within it.
    """
    return _read_quantised(cursor, what, rows, dim) if quantised else _read_dense(cursor, what, rows, dim)


def _read_shape(cursor: Cursor, what: str, rows: int, dim: int) -> None:
    found = cursor.read(struct.Struct("<2q"), f"the shape of the {what} matrix")
    if found != (rows, dim):
        cursor.fail(f"the {what} matrix has {found[0]} rows of {found[1]}, the header and the dictionary ask for {rows} of {dim}", 16)


def _read_dense(cursor: Cursor, what: str, rows: int, dim: int) -> Dense:
    _read_shape(cursor, what, rows, dim)
    return Dense(cursor.take(rows * dim * 4, f"the {what} matrix of {rows} rows of {dim}").reshape(rows, dim * 4))


def _read_quantised(cursor: Cursor, what: str, rows: int, dim: int) -> Quantised:
    (apart,) = cursor.read(struct.Struct("<B"), f"whether the norms of the {what} matrix are apart")
    if apart > 1:
        cursor.fail(f"whether norms are apart is {apart}, it should be 0 or 1", 1)
    _read_shape(cursor, what, rows, dim)
    (size,) = cursor.read(struct.Struct("<i"), f"the number of codes of the {what} matrix")
    if size <= 0 or size % rows or size // rows > dim:
        cursor.fail(f"{size} codes for {rows} rows of {dim}: it should be a multiple of the rows, 1 to {dim} codes each", 4)
    codes = cursor.take(size, f"{size} codes").reshape(rows, -1)
    quantiser = _read_quantiser(cursor, f"the {what} matrix", dim, codes.shape[1])
    if not apart:
        return Quantised(codes, quantiser, None, None)
    norm_codes = cursor.take(rows, f"{rows} codes of norms")
    return Quantised(codes, quantiser, norm_codes, _read_quantiser(cursor, "the norms", 1, 1).last[:, 0])


def _read_quantiser(cursor: Cursor, what: str, dim: int, blocks: int) -> Quantiser:
    found = cursor.read(struct.Struct("<4i"), f"the quantiser of {what}")
    width = found[2]
    if found[:2] != (dim, blocks) or width < 1 or -(-dim // width) != blocks or found[3] != dim - (blocks - 1) * width:
        cursor.fail(f"the quantiser of {what} has dim, blocks, width, last {found}: expected {dim}, {blocks} and widths that add up to {dim}", 16)
    values = np.frombuffer(cursor.take(dim * _CENTROIDS * 4, f"the centroids of {what}").tobytes(), dtype="<f4")
    head = (blocks - 1) * _CENTROIDS * width
    return Quantiser(values[:head].reshape(blocks - 1, _CENTROIDS, width), values[head:].reshape(_CENTROIDS, found[3]))
