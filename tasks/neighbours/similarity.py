"""Finds exact nearest neighbours by cosine.

The matrix of products is computed in square tiles, and the best candidates of each row are updated after each
tile. If all titles are queries, a tile is used for its rows and for its columns, which halves the number of
products. Products are float32; candidates are sorted by cosines in float64. The search needs a few tiles of
4 MiB and 16 (k + EXTRA_CANDIDATES) bytes per row (52 MiB for 100,000 titles with k = 25). If torch is loaded
and finds a GPU, the GPU computes large products with the same result (on_gpu.py).
"""

import logging
import sys
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from storage.cores import cores
from tasks.neighbours.rescoring import empty_neighbours, order_candidates

log = logging.getLogger(__name__)

TILE_SIDE = 1_024  # rows and columns of a tile: 4 MiB, and column numbers fit in 16 bits
EXTRA_CANDIDATES = 8  # candidates in addition to k, because cosines in float64 may change the order
FEW_QUERIES = 8  # maximum number of queries for which 8-bit codes are faster (codes.py)
HIT_BUFFER = 32  # minimum number of slots for hits in the buffer of a row
EMPTY = np.int64(np.iinfo(np.int64).min)  # marks an empty slot; it is less than every packed value
ID_BITS = 32  # bits of the id in a packed value
MIN_PAIRS = 1 << 26  # for fewer pairs, a CPU core takes at most .2 s, the start-up time of the GPU
# Rows, columns and values of entries of a tile. Its rows are queries and its columns titles of the base.
Hits = tuple[np.ndarray, np.ndarray, np.ndarray]


def top_neighbours(
    queries: np.ndarray,
    base: np.ndarray,
    k: int,
    *,
    exclude_self: bool = False,
    checked: bool = False,
    block: int = TILE_SIDE,
) -> tuple[np.ndarray, np.ndarray]:
    """Finds the k rows of ``base`` with the largest cosine to each query. In a tie, the lower id is first.

    A zero row, which is a title without any token of the vocabulary, has no neighbours and is no neighbour.

    Args:
        queries: Vectors of queries, float32 (queries, dim), unit norm or zero.
        base: Vectors of titles, float32 (titles, dim), unit norm or zero.
        k: Number of neighbours per query, at least 1.
        exclude_self: Whether ``queries`` is ``base``, and a row is not its own neighbour.
        checked: Whether the caller guarantees that all rows of ``base`` have unit norm.
        block: Rows and columns of one product, at most 1,024.

    Returns:
        The ids, int64, padded with -1, and the cosines, float32, padded with 0, both (queries, k), in
        descending order of cosines.

    Raises:
        ValueError: Shapes do not match, k or block is below 1, or the norm of a row is neither 1 nor 0.
    """
    if k < 1 or block < 1:
        raise ValueError(f"k and block must be at least 1, got k={k} and block={block}")
    if queries.ndim != 2 or base.ndim != 2 or queries.shape[1] != base.shape[1]:
        raise ValueError(f"queries and base must have the same dim, got {queries.shape} and {base.shape}")
    if exclude_self and len(queries) != len(base):
        raise ValueError(
            f"exclude_self needs the base itself as queries, got {len(queries)} queries for {len(base)} rows"
        )
    base_ids = np.arange(len(base)) if checked else np.flatnonzero(nonzero_rows(base, "base"))
    query_ids = base_ids if exclude_self else np.flatnonzero(nonzero_rows(queries, "queries"))
    ids, cosines = empty_neighbours(len(queries), k)
    if len(base_ids) and len(query_ids):
        nonzero_base = select_rows(base, base_ids)
        nonzero_queries = nonzero_base if exclude_self else select_rows(queries, query_ids)

        def fill(results: Iterator[tuple[int, np.ndarray, np.ndarray]]) -> None:
            for start, best, best_cosines in results:
                block_ids = query_ids[start : start + len(best)]
                ids[block_ids, : best.shape[1]] = np.where(best >= 0, base_ids[best], -1)
                cosines[block_ids, : best.shape[1]] = best_cosines

        if is_gpu_faster(len(nonzero_queries) * len(nonzero_base)):
            from tasks.neighbours.on_gpu import OutOfMemory, search_on_gpu

            try:
                top_k = min(k + EXTRA_CANDIDATES, len(nonzero_base))
                fill(search_on_gpu(nonzero_queries, nonzero_base, k, top_k, exclude_self))
                return ids, cosines
            except OutOfMemory as error:
                log.warning("out of GPU memory, computing neighbours on the CPU: %s", error)
        fill(_search(nonzero_queries, nonzero_base, k, exclude_self, min(block, TILE_SIDE)))
    return ids, cosines


def is_gpu_faster(pairs: int) -> bool:
    """Returns whether torch is loaded and finds a GPU, and ``pairs`` is large enough to use the GPU."""
    torch = sys.modules.get("torch")
    return pairs >= MIN_PAIRS and torch is not None and torch.cuda.is_available()


def nonzero_rows(vectors: np.ndarray, name: str = "vectors") -> np.ndarray:
    """Returns the mask of rows that are not zero, bool (rows,). ``name`` is used in the error message.

    Raises:
        ValueError: The norm of a row is neither 1 (within 1e-3) nor 0, or is NaN.
    """
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    is_nonzero = norms != 0
    invalid_rows = np.flatnonzero(~(~is_nonzero | (np.abs(norms - 1) < 1e-3)))
    if len(invalid_rows):
        raise ValueError(
            f"{name} must have rows of norm 1 (or all zero), but row {invalid_rows[0]} has norm "
            f"{norms[invalid_rows[0]]:.6g}. Divide each row by its norm first."
        )
    return is_nonzero


def select_rows(vectors: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Returns ``vectors[rows]`` as contiguous float32, without a copy if all rows are selected."""
    return np.ascontiguousarray(vectors if len(rows) == len(vectors) else vectors[rows], dtype=np.float32)


def pack(values: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Packs values (float32, not NaN) and ids (0 to 2^32 - 1) into int64, which sort like the values."""
    return (_to_ordered_bits(values.view(np.int32)).astype(np.int64) << ID_BITS) | ids


def unpack(packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inverts ``pack``: returns values, float32, and ids, int64; minus infinity and -1 for empty slots."""
    values = _to_ordered_bits((packed >> ID_BITS).astype(np.int32)).view(np.float32)
    is_empty = packed == EMPTY
    ids = packed & ((1 << ID_BITS) - 1)
    return np.where(is_empty, np.float32(-np.inf), values), np.where(is_empty, -1, ids)


def _to_ordered_bits(bits: np.ndarray) -> np.ndarray:
    """Maps the bits of floats to integers that sort like the floats. The function is its own inverse."""
    return bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF))


class RunningTop:
    """Collects the ``top_k`` largest values of each row of a matrix, and their column ids, tile by tile.

    The threshold of a row is the smallest of its ``top_k`` values. A *hit* is a value above the threshold. It
    is added to the buffer of its row. A full buffer is sorted and reduced to the largest values, which raises
    the threshold. This is faster than selecting the top k of every tile by torch.topk, which takes 10 ns per
    value: computing a value (a dot product of 100 dimensions) takes 2.6 ns, and comparing it with the
    threshold takes .4 ns. A value and its id are packed into a 64-bit integer, because NumPy sorts such
    integers fast: a buffer of 66 integers in .2 µs.
    """

    def __init__(self, rows: int, top_k: int) -> None:
        self.top_k = top_k
        self.packed = np.full((rows, top_k + max(HIT_BUFFER, top_k)), EMPTY, dtype=np.int64)
        self.filled = np.zeros(rows, dtype=np.int64)
        self.threshold = np.full(rows, -np.inf, dtype=np.float32)

    def begin(self, first: int, tile: np.ndarray, first_id: int) -> None:
        """Initializes the rows from ``first`` on with the largest finite values of a tile.

        ``first_id`` is the id of the first column of the tile.
        """
        count = min(self.top_k, tile.shape[1])
        ids = np.argpartition(tile, tile.shape[1] - count, axis=1)[:, -count:]
        values = np.take_along_axis(tile, ids, 1)
        rows = slice(first, first + len(tile))
        self.packed[rows, :count] = np.where(values == -np.inf, EMPTY, pack(values, ids + first_id))
        self.filled[rows] = count
        self.compact(np.arange(rows.start, rows.stop))

    def offer(self, first: int, rows: np.ndarray, ids: np.ndarray, values: np.ndarray) -> None:
        """Adds hits, which are values above the threshold of their row.

        ``rows`` are ascending row numbers, counted from ``first``.
        """
        if not len(rows):
            return
        slot_count, counts = self.packed.shape[1], np.bincount(rows)
        block = slice(first, first + len(counts))
        full_rows = np.flatnonzero(self.filled[block] + counts > slot_count)
        if len(full_rows):
            self.compact(full_rows + first)
            is_above = values > self.threshold[block][rows]
            rows, ids, values = rows[is_above], ids[is_above], values[is_above]
            counts = np.bincount(rows, minlength=len(counts))
            if (self.filled[block] + counts).max() > slot_count:  # a buffer is still too small for its hits
                for every_second in (slice(0, None, 2), slice(1, None, 2)):
                    self.offer(first, rows[every_second], ids[every_second], values[every_second])
                return
        slots = np.arange(len(rows)) + (self.filled[block] - np.cumsum(counts) + counts)[rows]
        self.packed.reshape(-1)[(rows + first) * slot_count + slots] = pack(values, ids)
        self.filled[block] += counts

    def compact(self, rows: np.ndarray) -> None:
        """Sorts the buffers of ``rows`` and reduces each buffer to its ``top_k`` largest values."""
        sorted_values = np.sort(self.packed[rows], axis=1)[:, : -self.top_k - 1 : -1]
        self.packed[rows, : self.top_k] = sorted_values
        self.packed[rows, self.top_k :] = EMPTY
        self.filled[rows] = np.minimum(self.filled[rows], self.top_k)
        self.threshold[rows] = unpack(sorted_values[:, -1])[0]

    def best(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the largest values of ``rows``, descending, and their ids, both (rows, top_k).

        Values are padded with minus infinity, ids with -1.
        """
        self.compact(rows)
        return unpack(self.packed[rows, : self.top_k])


def hits_by_row(tile: np.ndarray, threshold: np.ndarray, mask: np.ndarray) -> Hits:
    """Returns the rows (ascending), columns and values of the entries above the threshold of their row.

    ``mask`` is a buffer of the shape of the tile.
    """
    positions = np.flatnonzero(np.greater(tile, threshold[:, None], out=mask))
    rows = positions // tile.shape[1]
    return rows, positions - rows * tile.shape[1], tile.reshape(-1)[positions]


def hits_by_column(tile: np.ndarray, threshold: np.ndarray, mask: np.ndarray) -> Hits:
    """Returns the columns (ascending), rows and values of the entries above the threshold of their column.

    ``mask`` is a buffer of the shape of the tile.
    """
    positions = np.flatnonzero(np.greater(tile, threshold, out=mask))
    rows = positions // tile.shape[1]  # np.divmod takes 25 times as long
    columns = positions - rows * tile.shape[1]
    order = np.argsort(columns.astype(np.uint16), kind="stable")  # uint16 uses a radix sort
    return columns[order], rows[order], tile.reshape(-1)[positions[order]]


def _search(
    queries: np.ndarray, base: np.ndarray, k: int, exclude_self: bool, block: int
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yields the first row of each block of queries, and their ids and cosines, both (rows, at most k)."""
    running_top = RunningTop(len(queries), min(k + EXTRA_CANDIDATES, len(base)))
    columns_per_tile = block if exclude_self else block * block // min(block, len(queries))
    buffer_size = min(block, len(queries)) * min(columns_per_tile, len(base))
    buffers, offer_lock = threading.local(), threading.Lock()

    def compute_tile(row: int, column: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the tile of products from ``row`` and ``column`` on, and a mask of the same shape.

        Both arrays are buffers that the thread reuses, because new memory for each tile would take a third of
        the time of the product.
        """
        if not hasattr(buffers, "tile"):
            buffers.tile = np.empty(buffer_size, dtype=np.float32)
            buffers.mask = np.empty(buffer_size, dtype=bool)
        tile_rows, tile_columns = queries[row:][:block], base[column:][:columns_per_tile]
        size = len(tile_rows) * len(tile_columns)
        tile = buffers.tile[:size].reshape(len(tile_rows), -1)
        if len(tile_rows) == 1:
            np.dot(tile_columns, tile_rows[0], out=tile[0])
        else:
            np.matmul(tile_rows, tile_columns.T, out=tile)
        return tile, buffers.mask[:size].reshape(tile.shape)

    def begin_rows(row: int) -> None:
        column = row if exclude_self else 0
        tile, _ = compute_tile(row, column)
        if exclude_self:
            np.fill_diagonal(tile, -np.inf)
        running_top.begin(row, tile, column)

    def compare(row: int, column: int) -> None:
        tile, mask = compute_tile(row, column)
        hit_rows, ids, values = hits_by_row(tile, running_top.threshold[row : row + len(tile)], mask)
        column_hits = None
        if exclude_self:
            column_hits = hits_by_column(tile, running_top.threshold[column : column + tile.shape[1]], mask)
        with offer_lock:  # an outdated threshold costs time but loses no hits
            running_top.offer(row, hit_rows, ids + column, values)
            if column_hits is not None:
                running_top.offer(column, column_hits[0], column_hits[1] + row, column_hits[2])

    def finish_rows(row: int) -> tuple[int, np.ndarray, np.ndarray]:
        rows, self_offset = slice(row, row + TILE_SIDE), row if exclude_self else None
        values, ids = running_top.best(np.arange(*rows.indices(len(queries))))
        return row, *order_candidates(queries[rows], base, k, ids, values=values, self_offset=self_offset)

    block_starts, threads = range(0, len(queries), block), cores()
    # A product of 1,024 x 1,024 is too small to be divided, so threads compute different tiles.
    with ThreadPoolExecutor(threads) as pool:
        run = map if threads == 1 else pool.map
        deque(run(begin_rows, block_starts), 0)
        for row in block_starts:
            first_column = row + block if exclude_self else columns_per_tile
            deque(run(partial(compare, row), range(first_column, len(base), columns_per_tile)), 0)
        yield from run(finish_rows, range(0, len(queries), TILE_SIDE))
