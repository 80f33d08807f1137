"""The one similarity kernel: exact nearest neighbours by cosine, as tiles of a matrix product with a running top-k.

Vectors have unit norm, so cosines are dot products and a tile of them is one matrix product. On the processor tiles are
small enough for its cache, and what is above a row's threshold is picked from them (running_top.py). When every title
looks for its neighbours among all the others, each tile is computed once and read in both directions: half the
products. An accelerator takes larger tiles and its own top-k.

Products are float32; the few candidates that remain are scored again in float64, so that the order, the ties and the
cosines handed out do not depend on the tiles or on the machine. Where more candidates lie within float32's error of the
k-th than were kept (many equal vectors), the row is done again in float64 over the whole base.

benchmarks/neighbours.py has the speed beside faiss. Memory: besides the inputs a few tiles of 4 MiB and 16 (k + SPARE)
bytes a row, of all rows up to ``BOTH_WAYS`` of them (52 MiB for 100,000 titles at k = 25), else of one block.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from tasks.neighbours.running_top import RunningTop, hits_by_column, hits_by_row

SIDE = 1_024  # rows and columns of a tile: 4 MiB, and its columns' numbers fit 16 bits
BASE_BLOCK = 16_384  # columns of one product on an accelerator
BOTH_WAYS = 250_000  # rows up to which a tile is read in both directions: every row's candidates are kept at once
SPARE = 8  # candidates beyond k that float64 may reorder
SCORED_AT_ONCE = 32  # rows whose candidates are scored in float64 together: .8 MiB at 33 candidates of 100 dimensions
DECIMALS = 12  # float64 cosines are compared to this many places: equal vectors tie, however their sum was blocked


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
        candidates = _by_blocks(rows, columns, wanted, exclude_self, block)
    elif exclude_self and len(rows) <= BOTH_WAYS:
        candidates = _both_ways(columns, wanted, block)
    else:
        candidates = _one_way(rows, columns, wanted, exclude_self, block)
    for start, values, found in candidates:
        best, exact = _settle(rows[start : start + len(values)], columns, k, values, found, start if exclude_self else None)
        place = asked[start : start + len(values)]
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


def product_tolerance() -> float:
    """How far a float32 product of unit vectors may be from the true cosine (measured at 128 dimensions: 2.5e-7)."""
    return 2e-6 if torch.get_float32_matmul_precision() == "highest" else 2e-2


Candidates = Iterator[tuple[int, torch.Tensor, torch.Tensor]]  # first row; values, falling, and ids, both (rows, wanted)


def _part(vectors: np.ndarray, kept: np.ndarray) -> torch.Tensor:
    """Some rows in float32; no copy when they are all and fit."""
    return torch.from_numpy(np.ascontiguousarray(vectors if len(kept) == len(vectors) else vectors[kept], dtype=np.float32))


def _both_ways(columns: torch.Tensor, wanted: int, block: int) -> Candidates:
    """Candidates of all rows among all others, each tile on or above the diagonal computed once."""
    total = len(columns)
    top = RunningTop(total, wanted)
    room, masks = torch.empty(block * block), np.empty(block * block, dtype=bool)
    for start in range(0, total, block):
        part = columns[start : start + block]
        tile = _product(part, part, room).fill_diagonal_(-torch.inf)
        top.begin(start, tile, start)
    for first in range(0, total, block):
        part = columns[first : first + block]
        for start in range(first + block, total, block):
            other = columns[start : start + block]
            tile = _product(part, other, room).numpy()
            mask = masks[: tile.size].reshape(tile.shape)
            rows, ids, values = hits_by_row(tile, top.threshold[first : first + len(part)], mask)
            top.offer(first, rows, ids + start, values)
            rows, ids, values = hits_by_column(tile, top.threshold[start : start + len(other)], mask)
            top.offer(start, rows, ids + first, values)
    yield from _parts(top, 0)


def _one_way(rows: torch.Tensor, columns: torch.Tensor, wanted: int, exclude_self: bool, block: int) -> Candidates:
    """Candidates of each block of rows among all columns."""
    block = min(block, len(rows))
    room, masks = torch.empty(block * SIDE), np.empty(block * SIDE, dtype=bool)
    for first in range(0, len(rows), block):
        part = rows[first : first + block]
        top = RunningTop(len(part), wanted)
        for start in range(0, len(columns), SIDE):
            tile = _product(part, columns[start : start + SIDE], room)
            if exclude_self:
                _hide_own(tile, first, start)
            if not start:
                top.begin(0, tile, 0)
                continue
            found, ids, values = hits_by_row(tile.numpy(), top.threshold, masks[: tile.numel()].reshape(tile.shape))
            top.offer(0, found, ids + start, values)
        yield from _parts(top, first)


def _by_blocks(rows: torch.Tensor, columns: torch.Tensor, wanted: int, exclude_self: bool, block: int) -> Candidates:
    """Candidates of each block of rows among all columns, by the device's own top-k."""
    room = torch.empty(min(block, len(rows)) * min(BASE_BLOCK, len(columns)), device=columns.device)
    for first in range(0, len(rows), block):
        part = rows[first : first + block]
        values = torch.empty(len(part), 0, device=columns.device)
        ids = torch.empty(len(part), 0, dtype=torch.int64, device=columns.device)
        for start in range(0, len(columns), BASE_BLOCK):
            tile = _product(part, columns[start : start + BASE_BLOCK], room)
            if exclude_self:
                _hide_own(tile, first, start)
            best, places = tile.topk(min(wanted, tile.shape[1]), dim=1)
            values, ids = torch.cat([values, best], 1), torch.cat([ids, places + start], 1)
            values, places = values.topk(min(wanted, values.shape[1]), dim=1)
            ids = ids.gather(1, places)
        yield first, values, ids.masked_fill(values == -torch.inf, -1)


def _product(rows: torch.Tensor, columns: torch.Tensor, room: torch.Tensor) -> torch.Tensor:
    """Cosines, shape (rows, columns), in ``room``: fresh pages for every tile cost a third of the product."""
    return torch.mm(rows, columns.T, out=room[: len(rows) * len(columns)].view(len(rows), -1))


def _hide_own(tile: torch.Tensor, first: int, start: int) -> None:
    """Sets each query's own column to minus infinity, in a tile of rows from ``first`` and columns from ``start``."""
    tile.diagonal(first - start).fill_(-torch.inf) if -len(tile) < first - start < tile.shape[1] else None


def _parts(top: RunningTop, first: int) -> Candidates:
    """What was kept, sorted, a block of rows at a time."""
    for start in range(0, len(top.values), SIDE):
        rows = np.arange(start, min(start + SIDE, len(top.values)))
        top.settle(rows)
        yield first + start, torch.from_numpy(top.values[rows, : top.wanted]), torch.from_numpy(top.ids[rows, : top.wanted].astype(np.int64))


def _settle(
    rows: torch.Tensor, columns: torch.Tensor, k: int, values: torch.Tensor, ids: torch.Tensor, excluded: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Ids (int64, -1 for none) and cosines (float32), shape (rows, at most k), decided in float64."""
    absent = ids < 0
    exact = _score(rows, columns, ids.clamp(min=0)).mul_(10.0**DECIMALS).round_().div_(10.0**DECIMALS)
    exact[absent] = -torch.inf
    ids, order = ids.sort(dim=1)  # ids first, then a stable sort by cosine: ties end in the order of their ids
    exact, order = exact.gather(1, order).sort(dim=1, descending=True, stable=True)
    ids = ids.gather(1, order)[:, :k]
    exact = exact[:, :k]
    if k < values.shape[1] < len(columns):
        close = (values[:, k - 1] - values[:, -1] <= 2 * product_tolerance()) & ~absent[:, -1]
        for chunk in close.nonzero().squeeze(1).split(max(1, SIDE * SIDE * 2 // len(columns))):
            ids[chunk], exact[chunk] = _best_in_float64(rows, columns, chunk, k, excluded)
    absent = exact == -torch.inf
    return ids.masked_fill(absent, -1).cpu().numpy(), exact.masked_fill(absent, 0).clamp(-1, 1).float().cpu().numpy()


def _score(rows: torch.Tensor, columns: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Float64 cosines of each row with its candidates, shape (rows, wanted)."""
    if columns.device.type != "cpu":
        return (columns[ids].double() @ rows.double()[:, :, None]).squeeze(2)
    scored, own, every, wanted = np.empty(ids.shape), rows.numpy(), columns.numpy(), ids.numpy()
    for start in range(0, len(own), SCORED_AT_ONCE):  # by numpy, in the cache: 7 microseconds a row, torch takes 21
        part = slice(start, start + SCORED_AT_ONCE)
        np.matmul(every[wanted[part]].astype(np.float64), own[part].astype(np.float64)[:, :, None], out=scored[part, :, None])
    return torch.from_numpy(scored)


def _best_in_float64(rows: torch.Tensor, columns: torch.Tensor, chunk: torch.Tensor, k: int, excluded: int | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and float64 cosines of some rows of a block, over the whole base, where float32 could not tell the k-th."""
    exact = torch.cat([rows[chunk].double() @ part.double().T for part in columns.split(BASE_BLOCK)], 1)
    exact.mul_(10.0**DECIMALS).round_().div_(10.0**DECIMALS)
    if excluded is not None:
        exact[torch.arange(len(chunk), device=chunk.device), excluded + chunk] = -torch.inf
    last = exact.topk(k, dim=1).values[:, -1:]
    above, level = exact > last, exact == last
    kept = above | (level & (level.cumsum(1) <= k - above.sum(1, keepdim=True)))
    ids = kept.nonzero()[:, 1].view(len(chunk), k)  # ascending ids
    values, order = exact.gather(1, ids).sort(dim=1, descending=True, stable=True)
    return ids.gather(1, order), values
