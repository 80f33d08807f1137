"""The one similarity kernel: exact nearest neighbours by cosine, as tiles of a matrix product with a running top-k.

Vectors have unit norm, so cosines are dot products and a tile of them is one matrix product. On the processor tiles are
small enough for its cache, what is above a row's threshold is picked from them (running_top.py), and each of torch's
threads does tiles of its own (workers.py). When every title looks for its neighbours among all the others, each tile is
computed once and read in both directions: half the products. An accelerator takes larger tiles and its own top-k.

Products are float32; the few candidates that remain are ordered in float64 (settling.py), so that the result does not
depend on the tiles, the threads or the machine.

benchmarks/neighbours.py has the speed beside faiss. Memory: besides the inputs a few tiles of 4 MiB and 16 (k + SPARE)
bytes a row, of all rows up to ``BOTH_WAYS`` of them (52 MiB for 100,000 titles at k = 25), else of one block a thread.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import torch

from tasks.neighbours.running_top import RunningTop, hits_by_column, hits_by_row
from tasks.neighbours.settling import BASE_BLOCK, settle
from tasks.neighbours.workers import in_threads

SIDE = 1_024  # rows and columns of a tile: 4 MiB, and its columns' numbers fit 16 bits
BOTH_WAYS = 250_000  # rows up to which a tile is read in both directions: every row's candidates are kept at once
SPARE = 8  # candidates beyond k that float64 may reorder


def top_neighbours(
    queries: np.ndarray,
    base: np.ndarray,
    k: int,
    *,
    exclude_self: bool = False,
    block: int = SIDE,
    device: str | torch.device = "cpu",
) -> tuple[np.ndarray, np.ndarray]:
    """The k rows of ``base`` of greatest cosine with each query; equal cosines go to the lower id.

    A zero row (a title of which no token is known) has no neighbours and is nobody's.

    Args:
        queries: float32, shape (queries, dim), unit norm or zero.
        base: float32, shape (titles, dim), unit norm or zero.
        k: Neighbours a query, at least 1.
        exclude_self: ``queries`` is ``base``, and row i is no neighbour of row i.
        block: Rows of one product.
        device: Where the products are computed.

    Returns:
        Ids, int64, shape (queries, k), best first, and cosines, float32, same shape. Where there are fewer than k
        candidates the row ends with id -1 and cosine 0.

    Raises:
        ValueError: Shapes that do not fit, k or block below 1, or rows that are neither of unit norm nor zero.
    """
    if k < 1 or block < 1:
        raise ValueError(f"k and block must be at least 1, got k={k} and block={block}")
    if queries.ndim != 2 or base.ndim != 2 or queries.shape[1] != base.shape[1]:
        raise ValueError(f"queries and base must be (rows, dim) with one dim, got {queries.shape} and {base.shape}")
    if exclude_self and len(queries) != len(base):
        raise ValueError(f"exclude_self needs the base itself as queries, got {len(queries)} queries for {len(base)} rows")
    known = np.flatnonzero(known_rows(base, "base"))
    asked = known if exclude_self else np.flatnonzero(known_rows(queries, "queries"))
    ids = np.full((len(queries), k), -1, dtype=np.int64)
    cosines = np.zeros((len(queries), k), dtype=np.float32)
    if not len(known) or not len(asked):
        return ids, cosines
    columns = _part(base, known).to(device)
    rows = columns if exclude_self else _part(queries, asked).to(device)
    wanted = min(k + SPARE, len(columns))
    block = min(block, 65_535)
    if columns.device.type != "cpu":
        found = _by_blocks(rows, columns, k, wanted, exclude_self, block)
    elif exclude_self and len(rows) <= BOTH_WAYS:
        found = _both_ways(columns, k, wanted, block)
    else:
        found = _one_way(rows, columns, k, wanted, exclude_self, block)
    for start, best, exact in found:
        place = asked[start : start + len(best)]
        width = best.shape[1]
        ids[place, :width] = np.where(best >= 0, known[best], -1)
        cosines[place, :width] = exact
    return ids, cosines


def known_rows(vectors: np.ndarray, name: str = "vectors") -> np.ndarray:
    """Which rows stand for something: bool, shape (rows,); false where the row is zero.

    Raises:
        ValueError: A row is neither of unit norm (within 1e-3) nor zero; not-a-number is neither.
    """
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    known = norms != 0
    wrong = ~(~known | (np.abs(norms - 1) < 1e-3))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(f"{name} must have rows of norm 1 (or all zero), but row {row} has norm {norms[row]:.6g}. Divide each row by its norm first.")
    return known


Found = Iterator[tuple[int, np.ndarray, np.ndarray]]  # first row; ids and cosines of some rows, both (rows, at most k)


def _part(vectors: np.ndarray, kept: np.ndarray) -> torch.Tensor:
    """Some rows in float32; no copy when they are all and fit."""
    return torch.from_numpy(np.ascontiguousarray(vectors if len(kept) == len(vectors) else vectors[kept], dtype=np.float32))


def _both_ways(columns: torch.Tensor, k: int, wanted: int, block: int) -> Found:
    """All rows among all others, each tile on or above the diagonal computed once."""
    total = len(columns)
    top = RunningTop(total, wanted)
    rooms = threading.local()
    offering = threading.Lock()

    def begin(start: int) -> None:
        part = columns[start : start + block]
        tile = _product(part, part, rooms).fill_diagonal_(-torch.inf)
        top.begin(start, tile.numpy(), start)

    def compare(place: tuple[int, int]) -> None:
        first, start = place
        part, other = columns[first : first + block], columns[start : start + block]
        tile = _product(part, other, rooms).numpy()
        mask = rooms.mask[: tile.size].reshape(tile.shape)
        rows, ids, values = hits_by_row(tile, top.threshold[first : first + len(part)], mask)
        their_rows, their_ids, their_values = hits_by_column(tile, top.threshold[start : start + len(other)], mask)
        with offering:  # thresholds only rise, so what another worker raised meanwhile costs time, not hits
            top.offer(first, rows, ids + start, values)
            top.offer(start, their_rows, their_ids + first, their_values)

    def finish(start: int) -> tuple[int, np.ndarray, np.ndarray]:
        values, ids = top.best(np.arange(start, min(start + SIDE, total)))
        return start, *settle(columns[start : start + SIDE], columns, k, values, ids, start)

    firsts = range(0, total, block)
    for _ in in_threads(begin, firsts):
        pass
    for _ in in_threads(compare, ((first, start) for first in firsts for start in range(first + block, total, block))):
        pass
    yield from in_threads(finish, range(0, total, SIDE))


def _one_way(rows: torch.Tensor, columns: torch.Tensor, k: int, wanted: int, exclude_self: bool, block: int) -> Found:
    """Each block of rows among all columns."""
    rooms = threading.local()

    def compare(first: int) -> tuple[int, np.ndarray, np.ndarray]:
        part = rows[first : first + block]
        top = RunningTop(len(part), wanted)
        for start in range(0, len(columns), SIDE):
            tile = _product(part, columns[start : start + SIDE], rooms)
            if exclude_self:
                _hide_own(tile, first, start)
            if not start:
                top.begin(0, tile.numpy(), 0)
                continue
            found, ids, values = hits_by_row(tile.numpy(), top.threshold, rooms.mask[: tile.numel()].reshape(tile.shape))
            top.offer(0, found, ids + start, values)
        values, ids = top.best(np.arange(len(part)))
        return first, *settle(part, columns, k, values, ids, first if exclude_self else None)

    yield from in_threads(compare, range(0, len(rows), block))


def _by_blocks(rows: torch.Tensor, columns: torch.Tensor, k: int, wanted: int, exclude_self: bool, block: int) -> Found:
    """Each block of rows among all columns, by the device's own top-k."""
    room = torch.empty(min(block, len(rows)) * min(BASE_BLOCK, len(columns)), device=columns.device)
    for first in range(0, len(rows), block):
        part = rows[first : first + block]
        values = torch.empty(len(part), 0, device=columns.device)
        ids = torch.empty(len(part), 0, dtype=torch.int64, device=columns.device)
        for start in range(0, len(columns), BASE_BLOCK):
            other = columns[start : start + BASE_BLOCK]
            tile = torch.mm(part, other.T, out=room[: len(part) * len(other)].view(len(part), -1))
            if exclude_self:
                _hide_own(tile, first, start)
            best, places = tile.topk(min(wanted, tile.shape[1]), dim=1)
            values, ids = torch.cat([values, best], 1), torch.cat([ids, places + start], 1)
            values, places = values.topk(min(wanted, values.shape[1]), dim=1)
            ids = ids.gather(1, places)
        yield first, *settle(part, columns, k, values, ids.masked_fill(values == -torch.inf, -1), first if exclude_self else None)


def _product(rows: torch.Tensor, columns: torch.Tensor, rooms: threading.local) -> torch.Tensor:
    """Cosines, shape (rows, columns), in this thread's room: fresh pages for every tile cost a third of the product."""
    entries = len(rows) * len(columns)
    if not hasattr(rooms, "tile") or rooms.tile.numel() < entries:
        rooms.tile, rooms.mask = torch.empty(entries), np.empty(entries, dtype=bool)
    return torch.mm(rows, columns.T, out=rooms.tile[:entries].view(len(rows), -1))


def _hide_own(tile: torch.Tensor, first: int, start: int) -> None:
    """Sets each query's own column to minus infinity, in a tile of rows from ``first`` and columns from ``start``."""
    tile.diagonal(first - start).fill_(-torch.inf) if -len(tile) < first - start < tile.shape[1] else None
