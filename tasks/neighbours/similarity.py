"""Exact nearest neighbours by cosine: tiles of a matrix product with a running top-k.

When every title looks for its neighbours among all the others, each tile is computed once and read in both
directions: half the products. Products are float32; the few candidates that remain are ordered in float64.
Memory: a few tiles of 4 MiB and 16 (k + SPARE) bytes a row (52 MiB for 100,000 titles at k = 25). Where torch
sees a GPU it makes the products of many pairs (on_gpu.py), with the same result.
"""

import logging
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import torch

from tasks.neighbours.on_gpu import search_on_gpu, worth_a_gpu
from tasks.neighbours.rescoring import no_neighbours, order_candidates

log = logging.getLogger(__name__)

SIDE = 1_024  # rows and columns of a tile: 4 MiB, and its columns' numbers fit 16 bits
SPARE = 8  # candidates beyond k that float64 may reorder
FEW = 8  # queries whose product is made title by title: of four with 21,800 titles 1.5 ms, not 2.5
ROOM = 32  # places for hits beside the kept ones
NOTHING = np.int64(np.iinfo(np.int64).min)  # an empty place: below every value
ID_BITS = 32
Hits = tuple[np.ndarray, np.ndarray, np.ndarray]


def top_neighbours(
    queries: np.ndarray,
    base: np.ndarray,
    k: int,
    *,
    exclude_self: bool = False,
    checked: bool = False,
    block: int = SIDE,
) -> tuple[np.ndarray, np.ndarray]:
    """The k rows of ``base`` of greatest cosine with each query; equal cosines go to the lower id.

    A zero row (a title of which no token is known) has no neighbours and is no neighbour.

    Args:
        queries: float32, shape (queries, dim), unit norm or zero.
        base: float32, shape (titles, dim), unit norm or zero.
        k: Neighbours a query, at least 1.
        exclude_self: ``queries`` is ``base``, and row i is no neighbour of row i.
        checked: All rows of ``base`` are known to have unit norm.
        block: Rows and columns of one product, at most 1,024.

    Returns:
        Ids, int64, best first, and cosines, float32: shape (queries, k); -1 and 0 behind the last candidate.

    Raises:
        ValueError: Shapes that do not fit, k or block below 1, or rows neither of unit norm nor zero.
    """
    if k < 1 or block < 1:
        raise ValueError(f"k and block must be at least 1, got k={k} and block={block}")
    if queries.ndim != 2 or base.ndim != 2 or queries.shape[1] != base.shape[1]:
        shapes = f"{queries.shape} and {base.shape}"
        raise ValueError(f"queries and base must be (rows, dim) with one dim, got {shapes}")
    if exclude_self and len(queries) != len(base):
        found = f"{len(queries)} queries for {len(base)} rows"
        raise ValueError(f"exclude_self needs the base itself as queries, got {found}")
    known = np.arange(len(base)) if checked else np.flatnonzero(known_rows(base, "base"))
    asked = known if exclude_self else np.flatnonzero(known_rows(queries, "queries"))
    ids, cosines = no_neighbours(len(queries), k)
    if len(known) and len(asked):
        columns = some_rows(base, known)
        rows = columns if exclude_self else some_rows(queries, asked)

        def fill(found: Iterator[tuple[int, np.ndarray, np.ndarray]]) -> None:
            for start, best, exact in found:
                place = asked[start : start + len(best)]
                ids[place, : best.shape[1]] = np.where(best >= 0, known[best], -1)
                cosines[place, : best.shape[1]] = exact

        if worth_a_gpu(len(rows) * len(columns)):
            try:
                wanted = min(k + SPARE, len(columns))
                fill(search_on_gpu(rows, columns, k, wanted, exclude_self))
                return ids, cosines
            except torch.OutOfMemoryError as error:
                log.warning("the CPU looks for neighbours, since the GPU has no room: %s", error)
        fill(_search(rows, columns, k, exclude_self, min(block, SIDE)))
    return ids, cosines


def known_rows(vectors: np.ndarray, name: str = "vectors") -> np.ndarray:
    """Which rows are not zero: bool, shape (rows,).

    Raises:
        ValueError: A row is neither of unit norm (within 1e-3) nor zero; NaN is neither.
    """
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    known = norms != 0
    wrong = np.flatnonzero(~(~known | (np.abs(norms - 1) < 1e-3)))
    if len(wrong):
        found = f"row {wrong[0]} has norm {norms[wrong[0]]:.6g}"
        remedy = "Divide each row by its norm first."
        raise ValueError(f"{name} must have rows of norm 1 (or all zero), but {found}. {remedy}")
    return known


def some_rows(vectors: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Some rows in float32, without a copy when they are all."""
    return np.ascontiguousarray(vectors if len(kept) == len(vectors) else vectors[kept], dtype=np.float32)


def pack(values: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """One int64 per float32 value and id (0 to 2^32 - 1), ordered as the values are; values are not NaN."""
    return (_as_ordered(values.view(np.int32)).astype(np.int64) << ID_BITS) | ids


def unpack(packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values, float32, and ids, int64; minus infinity and -1 for an empty place."""
    values = _as_ordered((packed >> ID_BITS).astype(np.int32)).view(np.float32)
    empty = packed == NOTHING
    return np.where(empty, np.float32(-np.inf), values), np.where(empty, -1, packed & ((1 << ID_BITS) - 1))


def _as_ordered(bits: np.ndarray) -> np.ndarray:
    """Float bits as integers of the same order, and back: larger negative floats have smaller bits."""
    return bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF))


class RunningTop:
    """The ``wanted`` greatest values of each row, fed tile by tile, and their ids.

    Selecting the best k of every tile would cost more than the products (torch.topk: 10 ns a value, a product
    of 100 dimensions 2.6 ns). Most values fail a comparison with their row's threshold (.4 ns); hits wait in
    spare room and are sorted when it is full, which raises the threshold. A value and its id make one 64-bit
    integer, value first: NumPy sorts 66 of them in .2 microseconds, torch.topk takes 1.7.
    """

    def __init__(self, rows: int, wanted: int) -> None:
        self.wanted = wanted
        self.packed = np.full((rows, wanted + max(ROOM, wanted)), NOTHING, dtype=np.int64)
        self.filled = np.zeros(rows, dtype=np.int64)
        self.threshold = np.full(rows, -np.inf, dtype=np.float32)  # what is not greater is not kept

    def begin(self, first: int, tile: np.ndarray, first_id: int) -> None:
        """Takes the best of a first tile for its rows from ``first``; minus infinity is never kept."""
        kept = min(self.wanted, tile.shape[1])
        ids = np.argpartition(tile, tile.shape[1] - kept, axis=1)[:, -kept:]
        values = np.take_along_axis(tile, ids, 1)
        rows = slice(first, first + len(tile))
        self.packed[rows, :kept] = np.where(values == -np.inf, NOTHING, pack(values, ids + first_id))
        self.filled[rows] = kept
        self.settle(np.arange(rows.start, rows.stop))

    def offer(self, first: int, rows: np.ndarray, ids: np.ndarray, values: np.ndarray) -> None:
        """Takes hits, values above their row's threshold; ``rows``, ascending, are counted from ``first``."""
        if not len(rows):
            return
        width, counts = self.packed.shape[1], np.bincount(rows)
        part = slice(first, first + len(counts))
        crowded = np.flatnonzero(self.filled[part] + counts > width)
        if len(crowded):
            self.settle(crowded + first)
            above = values > self.threshold[part][rows]
            rows, ids, values = rows[above], ids[above], values[above]
            counts = np.bincount(rows, minlength=len(counts))
            if (self.filled[part] + counts).max() > width:  # still more than there is room for
                for half in (slice(0, None, 2), slice(1, None, 2)):
                    self.offer(first, rows[half], ids[half], values[half])
                return
        places = np.arange(len(rows)) + (self.filled[part] - np.cumsum(counts) + counts)[rows]
        self.packed.reshape(-1)[(rows + first) * width + places] = pack(values, ids)
        self.filled[part] += counts

    def settle(self, rows: np.ndarray) -> None:
        """Keeps the wanted values of these rows, the greatest first, and empties the other places."""
        kept = np.sort(self.packed[rows], axis=1)[:, : -self.wanted - 1 : -1]
        self.packed[rows, : self.wanted] = kept
        self.packed[rows, self.wanted :] = NOTHING
        self.filled[rows] = np.minimum(self.filled[rows], self.wanted)
        self.threshold[rows] = unpack(kept[:, -1])[0]

    def best(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values, falling (minus infinity for none), and ids (-1 for none), of rows: shape (rows, wanted)."""
        self.settle(rows)
        return unpack(self.packed[rows, : self.wanted])


def hits_by_row(tile: np.ndarray, threshold: np.ndarray, mask: np.ndarray) -> Hits:
    """Rows (ascending), columns and values above their row's threshold; ``mask`` is scratch of its shape."""
    flat = np.flatnonzero(np.greater(tile, threshold[:, None], out=mask))
    rows = flat // tile.shape[1]
    return rows, flat - rows * tile.shape[1], tile.reshape(-1)[flat]


def hits_by_column(tile: np.ndarray, threshold: np.ndarray, mask: np.ndarray) -> Hits:
    """Columns (ascending), rows and values above the threshold of their column."""
    flat = np.flatnonzero(np.greater(tile, threshold, out=mask))
    rows = flat // tile.shape[1]  # np.divmod takes 25 times as long
    columns = flat - rows * tile.shape[1]
    order = np.argsort(columns.astype(np.uint16), kind="stable")  # 16 bits: sorted by radix
    return columns[order], rows[order], tile.reshape(-1)[flat[order]]


def _search(
    rows: np.ndarray, columns: np.ndarray, k: int, exclude_self: bool, block: int
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """First row, ids and cosines (rows, at most k) of some rows after the other."""
    top = RunningTop(len(rows), min(k + SPARE, len(columns)))
    width = block if exclude_self else block * block // min(block, len(rows))  # one query: one product
    most = min(block, len(rows)) * min(width, len(columns))
    room, offering = threading.local(), threading.Lock()

    def product(first: int, start: int) -> tuple[np.ndarray, np.ndarray]:
        """A tile and a mask in this thread's room: new pages for every tile cost a third of the product."""
        if not hasattr(room, "tile"):
            room.tile, room.mask = torch.empty(most), np.empty(most, dtype=bool)
        part, other = map(torch.from_numpy, (rows[first:][:block], columns[start:][:width]))
        size = len(part) * len(other)
        tile = room.tile[:size].view(len(part), -1)
        if len(part) == 1:
            np.dot(other.numpy(), part[0].numpy(), out=tile[0].numpy())  # half of the time of torch's
        elif len(part) <= FEW:
            tile.copy_(torch.mm(other, part.T).T)
        else:
            torch.mm(part, other.T, out=tile)
        return tile.numpy(), room.mask[:size].reshape(tile.shape)

    def begin(first: int) -> None:
        start = first if exclude_self else 0
        tile, _ = product(first, start)
        if exclude_self:
            np.fill_diagonal(tile, -np.inf)
        top.begin(first, tile, start)

    def compare(first: int, start: int) -> None:
        tile, mask = product(first, start)
        found, ids, values = hits_by_row(tile, top.threshold[first : first + len(tile)], mask)
        theirs = None
        if exclude_self:
            theirs = hits_by_column(tile, top.threshold[start : start + tile.shape[1]], mask)
        with offering:  # a threshold that another thread has raised meanwhile costs time, not hits
            top.offer(first, found, ids + start, values)
            if theirs is not None:
                top.offer(start, theirs[0], theirs[1] + first, theirs[2])

    def finish(start: int) -> tuple[int, np.ndarray, np.ndarray]:
        values, ids = top.best(np.arange(start, min(start + SIDE, len(rows))))
        own = start if exclude_self else None
        return start, *order_candidates(rows[start : start + SIDE], columns, k, ids, values, own)

    firsts, threads = range(0, len(rows), block), torch.get_num_threads()
    # a product of 1,024 x 1,024 is too small to share between threads: each computes tiles of its own
    with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        run = map if threads == 1 else pool.map
        try:
            deque(run(begin, firsts), 0)
            for first in firsts:
                start = first + block if exclude_self else width
                deque(run(partial(compare, first), range(start, len(columns), width)), 0)
            yield from run(finish, range(0, len(rows), SIDE))
        finally:
            torch.set_num_threads(threads)  # a worker's setting is also the one that new threads begin with
