"""The last word on nearest neighbours: a row's few candidates, ordered by their cosines in float64.

A product in float32 is off by some 2.5e-7. What it proposes is scored again, so that the order, the ties and the cosines
handed out do not depend on tiles, threads or the machine. Where more candidates lie within float32's error of the k-th
than were kept (many equal vectors), the row is done again in float64 over the whole base.
"""

from __future__ import annotations

import numpy as np
import torch

BASE_BLOCK = 16_384  # columns of one product
PRODUCT = 2_097_152  # entries of a product in float64: 16 MiB
SCORED_AT_ONCE = 32  # rows whose candidates are scored in float64 together: .8 MiB at 33 candidates of 100 dimensions
DECIMALS = 12  # float64 cosines are compared to this many places: equal vectors tie, however their sum was blocked


def product_tolerance() -> float:
    """How far a float32 product of unit vectors may be from the true cosine (measured at 128 dimensions: 2.5e-7)."""
    return 2e-6 if torch.get_float32_matmul_precision() == "highest" else 2e-2


def settle(
    rows: torch.Tensor, columns: torch.Tensor, k: int, values: torch.Tensor, ids: torch.Tensor, excluded: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The best k candidates of each row, equal cosines by the lower id.

    Args:
        rows: float32, shape (rows, dim), unit norm.
        columns: float32, shape (titles, dim), unit norm: the base.
        k: Neighbours a row.
        values: float32, shape (rows, wanted), wanted at least k where there are as many titles: cosines, falling.
        ids: int64, same shape; -1 for none.
        excluded: The title that is the first row itself, those after it the other rows'; None where rows are no titles.

    Returns:
        Ids, int64, -1 for none, and cosines, float32, 0 for none: shape (rows, at most k).
    """
    ids, exact = _ordered(rows, columns, ids)
    known = ids[:, -1] >= 0
    ids, exact = ids[:, :k], exact[:, :k]
    if k < values.shape[1] < len(columns):
        close = (values[:, k - 1] - values[:, -1] <= 2 * product_tolerance()) & known
        unclear = close.nonzero().squeeze(1)
        for chunk in unclear.split(max(1, PRODUCT // len(columns))) if len(unclear) else ():
            ids[chunk], exact[chunk] = _best_in_float64(rows, columns, chunk, k, excluded)
    return _as_numpy(ids, exact)


def order_candidates(rows: torch.Tensor, columns: torch.Tensor, k: int, ids: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """``settle`` for candidates that an approximate search found: what it left out stays out.

    Args:
        rows: float32, shape (rows, dim), unit norm.
        columns: float32, shape (titles, dim), unit norm.
        k: Neighbours a row.
        ids: Candidates in any order, int64, shape (rows, wanted); -1 for none.
    """
    ids, exact = _ordered(rows, columns, ids)
    return _as_numpy(ids[:, :k], exact[:, :k])


def _ordered(rows: torch.Tensor, columns: torch.Tensor, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The candidates by falling float64 cosine, equal ones by the lower id; -1 and minus infinity, for none, last."""
    exact = _score(rows, columns, ids.clamp(min=0)).mul_(10.0**DECIMALS).round_().div_(10.0**DECIMALS)
    exact[ids < 0] = -torch.inf
    ids, order = ids.sort(dim=1)  # ids first, then a stable sort by cosine: ties end in the order of their ids
    exact, order = exact.gather(1, order).sort(dim=1, descending=True, stable=True)
    return ids.gather(1, order), exact


def _as_numpy(ids: torch.Tensor, exact: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
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
    """Ids and float64 cosines of some of the rows, over the whole base, where float32 could not tell the k-th."""
    own = rows[chunk].double()
    exact = torch.empty(len(own), len(columns), dtype=torch.float64, device=columns.device)
    for start in range(0, len(columns), BASE_BLOCK):
        part = columns[start : start + BASE_BLOCK]
        exact[:, start : start + len(part)] = own @ part.double().T
    exact.mul_(10.0**DECIMALS).round_().div_(10.0**DECIMALS)
    if excluded is not None:
        exact[torch.arange(len(chunk), device=chunk.device), excluded + chunk] = -torch.inf
    last = exact.topk(k, dim=1).values[:, -1:]
    above, level = exact > last, exact == last
    kept = above | (level & (level.cumsum(1) <= k - above.sum(1, keepdim=True)))
    ids = kept.nonzero()[:, 1].view(len(chunk), k)  # ascending ids
    values, order = exact.gather(1, ids).sort(dim=1, descending=True, stable=True)
    return ids.gather(1, order), values
