"""Finds exact nearest neighbours by cosine.

The matrix of products is computed in square tiles, and the best candidates of each row are updated after each
tile. When all titles are queries, each tile is used for its rows and its columns, which halves the products.
Products are float32; candidates are sorted in float64. The search needs a few tiles of 4 MiB and 16 (k +
EXTRA_CANDIDATES) bytes per row (52 MiB for 100,000 titles with k = 25). If torch is loaded and finds a GPU,
the GPU computes large products with the same result (on_gpu.py).
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
EXTRA_CANDIDATES = 8  # candidates beyond k, which float64 may reorder
FEW_QUERIES = 8  # maximum number of queries for which 8-bit codes are faster (codes.py)
HIT_BUFFER = 32  # slots for hits in addition to the kept values
EMPTY = np.int64(np.iinfo(np.int64).min)  # an empty slot, less than every value
ID_BITS = 32
MIN_PAIRS = 1 << 26  # for fewer pairs, a CPU core takes at most .2 s, the start-up time of the GPU
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
        queries: float32 (queries, dim), unit norm or zero.
        base: float32 (titles, dim), unit norm or zero.
        k: Neighbours per query, at least 1.
        exclude_self: ``queries`` is ``base``, and a row is not its own neighbour.
        checked: Whether the caller has checked that all rows of ``base`` have unit norm.
        block: Rows and columns of one product, at most 1,024.

    Returns:
        Ids, int64, best first, and cosines, float32, both (queries, k), padded with -1 and 0.

    Raises:
        ValueError: Shapes do not match, k or block is below 1, or a row has neither unit norm nor norm zero.
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
        columns = select_rows(base, base_ids)
        rows = columns if exclude_self else select_rows(queries, query_ids)

        def fill(results: Iterator[tuple[int, np.ndarray, np.ndarray]]) -> None:
            for start, best, best_cosines in results:
                block_ids = query_ids[start : start + len(best)]
                ids[block_ids, : best.shape[1]] = np.where(best >= 0, base_ids[best], -1)
                cosines[block_ids, : best.shape[1]] = best_cosines

        if is_gpu_faster(len(rows) * len(columns)):
            from tasks.neighbours.on_gpu import OutOfMemory, search_on_gpu

            try:
                top_k = min(k + EXTRA_CANDIDATES, len(columns))
                fill(search_on_gpu(rows, columns, k, top_k, exclude_self))
                return ids, cosines
            except OutOfMemory as error:
                log.warning("out of GPU memory, computing neighbours on the CPU: %s", error)
        fill(_search(rows, columns, k, exclude_self, min(block, TILE_SIDE)))
    return ids, cosines


def is_gpu_faster(pairs: int) -> bool:
    """Whether torch is loaded and finds a GPU, and the number of pairs is large enough to use it."""
    torch = sys.modules.get("torch")
    return pairs >= MIN_PAIRS and torch is not None and torch.cuda.is_available()


def nonzero_rows(vectors: np.ndarray, name: str = "vectors") -> np.ndarray:
    """Returns the mask of rows that are not zero, bool (rows,).

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
    """Returns the selected rows as contiguous float32, without a copy if possible."""
    return np.ascontiguousarray(vectors if len(rows) == len(vectors) else vectors[rows], dtype=np.float32)


def pack(values: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Packs values (float32, not NaN) and ids (0 to 2^32 - 1) into int64, which sort like the values."""
    return (_to_ordered_bits(values.view(np.int32)).astype(np.int64) << ID_BITS) | ids


def unpack(packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inverts ``pack``: returns values, float32, and ids, int64. An empty slot has minus infinity and -1."""
    values = _to_ordered_bits((packed >> ID_BITS).astype(np.int32)).view(np.float32)
    is_empty = packed == EMPTY
    ids = packed & ((1 << ID_BITS) - 1)
    return np.where(is_empty, np.float32(-np.inf), values), np.where(is_empty, -1, ids)


def _to_ordered_bits(bits: np.ndarray) -> np.ndarray:
    """Maps the bits of floats to integers that sort like the floats. The function is its own inverse."""
    return bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF))


class RunningTop:
    """Keeps the ``top_k`` largest values of each row and their ids while tiles arrive.

    The threshold of a row is its smallest kept value. A hit is a value above the threshold. Hits are added to
    the buffer of the row. A full buffer is sorted and reduced to the largest values, which raises the
    threshold. This is faster than selecting the top k of every tile: comparing a value with the threshold
    takes .4 ns, torch.topk takes 10 ns per value, and a product with 100 dimensions takes 2.6 ns. A value and
    its id are packed into a 64-bit integer, because NumPy sorts 66 of these in .2 µs.
    """

    def __init__(self, rows: int, top_k: int) -> None:
        self.top_k = top_k
        self.packed = np.full((rows, top_k + max(HIT_BUFFER, top_k)), EMPTY, dtype=np.int64)
        self.filled = np.zeros(rows, dtype=np.int64)
        self.threshold = np.full(rows, -np.inf, dtype=np.float32)  # only larger values are kept

    def begin(self, first: int, tile: np.ndarray, first_id: int) -> None:
        """Initializes the rows from ``first`` on with the largest finite values of a tile."""
        count = min(self.top_k, tile.shape[1])
        ids = np.argpartition(tile, tile.shape[1] - count, axis=1)[:, -count:]
        values = np.take_along_axis(tile, ids, 1)
        rows = slice(first, first + len(tile))
        self.packed[rows, :count] = np.where(values == -np.inf, EMPTY, pack(values, ids + first_id))
        self.filled[rows] = count
        self.compact(np.arange(rows.start, rows.stop))

    def offer(self, first: int, rows: np.ndarray, ids: np.ndarray, values: np.ndarray) -> None:
        """Adds hits: values above the threshold of their row. ``rows`` are ascending and relative to
        ``first``.
        """
        if not len(rows):
            return
        width, counts = self.packed.shape[1], np.bincount(rows)
        part = slice(first, first + len(counts))
        full_rows = np.flatnonzero(self.filled[part] + counts > width)
        if len(full_rows):
            self.compact(full_rows + first)
            is_above = values > self.threshold[part][rows]
            rows, ids, values = rows[is_above], ids[is_above], values[is_above]
            counts = np.bincount(rows, minlength=len(counts))
            if (self.filled[part] + counts).max() > width:  # still more than fit
                for every_second in (slice(0, None, 2), slice(1, None, 2)):
                    self.offer(first, rows[every_second], ids[every_second], values[every_second])
                return
        places = np.arange(len(rows)) + (self.filled[part] - np.cumsum(counts) + counts)[rows]
        self.packed.reshape(-1)[(rows + first) * width + places] = pack(values, ids)
        self.filled[part] += counts

    def compact(self, rows: np.ndarray) -> None:
        """Sorts the buffers of these rows and keeps the ``top_k`` largest values of each."""
        sorted_values = np.sort(self.packed[rows], axis=1)[:, : -self.top_k - 1 : -1]
        self.packed[rows, : self.top_k] = sorted_values
        self.packed[rows, self.top_k :] = EMPTY
        self.filled[rows] = np.minimum(self.filled[rows], self.top_k)
        self.threshold[rows] = unpack(sorted_values[:, -1])[0]

    def best(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns values, descending, and ids, both (rows, top_k), padded with minus infinity and -1."""
        self.compact(rows)
        return unpack(self.packed[rows, : self.top_k])


def hits_by_row(tile: np.ndarray, threshold: np.ndarray, mask: np.ndarray) -> Hits:
    """Returns rows (ascending), columns and values of the entries above their row's threshold."""
    positions = np.flatnonzero(np.greater(tile, threshold[:, None], out=mask))
    rows = positions // tile.shape[1]
    return rows, positions - rows * tile.shape[1], tile.reshape(-1)[positions]


def hits_by_column(tile: np.ndarray, threshold: np.ndarray, mask: np.ndarray) -> Hits:
    """Returns columns (ascending), rows and values of the entries above their column's threshold."""
    positions = np.flatnonzero(np.greater(tile, threshold, out=mask))
    rows = positions // tile.shape[1]  # np.divmod takes 25 times as long
    columns = positions - rows * tile.shape[1]
    order = np.argsort(columns.astype(np.uint16), kind="stable")  # uint16 uses a radix sort
    return columns[order], rows[order], tile.reshape(-1)[positions[order]]


def _search(
    rows: np.ndarray, columns: np.ndarray, k: int, exclude_self: bool, block: int
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yields for each block of rows: first row, and ids and cosines of neighbours, (rows, at most k)."""
    running_top = RunningTop(len(rows), min(k + EXTRA_CANDIDATES, len(columns)))
    width = block if exclude_self else block * block // min(block, len(rows))
    cells = min(block, len(rows)) * min(width, len(columns))
    scratch, offering = threading.local(), threading.Lock()

    def product(first: int, start: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns a tile of products, and a mask of the same shape, in buffers that the thread reuses.

        New memory for each tile would take a third of the time of the product.
        """
        if not hasattr(scratch, "tile"):
            scratch.tile, scratch.mask = np.empty(cells, dtype=np.float32), np.empty(cells, dtype=bool)
        part, other = rows[first:][:block], columns[start:][:width]
        size = len(part) * len(other)
        tile = scratch.tile[:size].reshape(len(part), -1)
        if len(part) == 1:
            np.dot(other, part[0], out=tile[0])
        else:
            np.matmul(part, other.T, out=tile)
        return tile, scratch.mask[:size].reshape(tile.shape)

    def begin(first: int) -> None:
        start = first if exclude_self else 0
        tile, _ = product(first, start)
        if exclude_self:
            np.fill_diagonal(tile, -np.inf)
        running_top.begin(first, tile, start)

    def compare(first: int, start: int) -> None:
        tile, mask = product(first, start)
        hit_rows, ids, values = hits_by_row(tile, running_top.threshold[first : first + len(tile)], mask)
        mirrored = None
        if exclude_self:
            mirrored = hits_by_column(tile, running_top.threshold[start : start + tile.shape[1]], mask)
        with offering:  # a stale threshold costs time but loses no hits
            running_top.offer(first, hit_rows, ids + start, values)
            if mirrored is not None:
                running_top.offer(start, mirrored[0], mirrored[1] + first, mirrored[2])

    def finish(start: int) -> tuple[int, np.ndarray, np.ndarray]:
        values, ids = running_top.best(np.arange(start, min(start + TILE_SIDE, len(rows))))
        self_offset = start if exclude_self else None
        return start, *order_candidates(rows[start : start + TILE_SIDE], columns, k, ids, values, self_offset)

    block_starts, threads = range(0, len(rows), block), cores()
    # A product of 1,024 x 1,024 is too small to be divided between threads, so each computes different tiles.
    with ThreadPoolExecutor(threads) as pool:
        run = map if threads == 1 else pool.map
        deque(run(begin, block_starts), 0)
        for first in block_starts:
            start = first + block if exclude_self else width
            deque(run(partial(compare, first), range(start, len(columns), width)), 0)
        yield from run(finish, range(0, len(rows), TILE_SIDE))
