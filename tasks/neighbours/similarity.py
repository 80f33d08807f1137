"""The one similarity kernel: exact nearest neighbours by cosine, as blocked matrix products with a running top-k.

Vectors have unit norm, so cosines are dot products and a block of them is one matrix product. Choosing the best k of
a row costs more than the product when done on all of its columns, so each row is first folded into groups of columns
and their maxima taken: the best c columns lie in the c groups of greatest maximum (each of those groups holds a value
at least as great as any column outside them), and only these groups' columns are looked at one by one.

Products are float32; the few candidates that remain are scored again in float64, so that the order, the ties and the
cosines handed out do not depend on the blocking or on the machine. Where more candidates lie within float32's error of
the k-th than were kept (many equal vectors), the row is done again in float64 over the whole base.

Memory: besides the inputs, a product of ``block`` x ``BASE_BLOCK`` float32 (32 MiB at the defaults) and its folded
copy, and ``block`` x (k + SPARE) x dim float64 of candidates: under 100 MiB for k = 25 and 128 dimensions, whatever
the number of titles.
"""

from __future__ import annotations

import numpy as np
import torch

BASE_BLOCK = 16_384  # columns of one product
GROUP = 32  # columns folded into one maximum; 16 to 64 measure alike
SPARE = 8  # candidates beyond k that float64 may reorder
DECIMALS = 12  # float64 cosines are compared to this many places: equal vectors tie, however their sum was blocked


def top_neighbours(
    queries: np.ndarray,
    base: np.ndarray,
    k: int,
    *,
    exclude_self: bool = False,
    block: int = 512,
    device: str | torch.device = "cpu",
) -> tuple[np.ndarray, np.ndarray]:
    """The k rows of ``base`` of greatest cosine with each query; equal cosines go to the lower id.

    A zero row (a title of which no token is known) has no neighbours and is nobody's.

    Args:
        queries: float32, shape (queries, dim), unit norm or zero.
        base: float32, shape (titles, dim), unit norm or zero.
        k: Neighbours a query, at least 1.
        exclude_self: ``queries`` is ``base``, and row i is no neighbour of row i.
        block: Query rows of one product.
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
    known_base = known_rows(base, "base")
    known_queries = known_base if exclude_self else known_rows(queries, "queries")
    ids = np.full((len(queries), k), -1, dtype=np.int64)
    cosines = np.zeros((len(queries), k), dtype=np.float32)
    if not len(queries) or not known_base.any():
        return ids, cosines
    columns = torch.from_numpy(np.ascontiguousarray(base, dtype=np.float32)).to(device)
    unknown = torch.from_numpy(np.flatnonzero(~known_base)).to(device)
    product = torch.empty(min(block, len(queries)) * min(BASE_BLOCK, len(base)), device=device)  # one for all: fresh pages cost a third of the product
    for start in range(0, len(queries), block):
        rows = torch.from_numpy(np.ascontiguousarray(queries[start : start + block], dtype=np.float32)).to(device)
        excluded = start if exclude_self else None
        found, values = _best_of_block(rows, columns, k, unknown, excluded, product)
        width = found.shape[1]
        ids[start : start + block, :width] = found.cpu().numpy()
        cosines[start : start + block, :width] = values.cpu().numpy()
    ids[~known_queries] = -1
    cosines[~known_queries] = 0
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


def _best_of_block(
    rows: torch.Tensor, columns: torch.Tensor, k: int, unknown: torch.Tensor, excluded: int | None, product: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids (int64) and cosines (float32), shape (rows, at most k), of one block of queries; ``product`` is room for it."""
    wanted = k + SPARE
    values = torch.empty(len(rows), 0, device=rows.device)
    ids = torch.empty(len(rows), 0, dtype=torch.int64, device=rows.device)
    for start in range(0, len(columns), BASE_BLOCK):
        stop = min(start + BASE_BLOCK, len(columns))
        products = torch.mm(rows, columns[start:stop].T, out=product[: len(rows) * (stop - start)].view(len(rows), -1))  # (rows, columns)
        _hide(products, start, unknown, excluded)
        best, places = _top(products, wanted)
        values = torch.cat([values, best], 1)
        ids = torch.cat([ids, places + start], 1)
        if values.shape[1] > wanted:
            values, places = values.topk(wanted, dim=1)
            ids = ids.gather(1, places)
    absent = values == -torch.inf
    exact = (columns[ids].double() @ rows.double()[:, :, None]).squeeze(2).mul_(10.0**DECIMALS).round_().div_(10.0**DECIMALS)
    exact[absent] = -torch.inf
    ids, order = ids.sort(dim=1)  # ids first, then a stable sort by cosine: ties end in the order of their ids
    exact, order = exact.gather(1, order).sort(dim=1, descending=True, stable=True)
    ids = ids.gather(1, order)[:, :k]
    exact = exact[:, :k]
    if values.shape[1] == wanted and len(columns) > wanted:
        close = (values[:, k - 1] - values[:, -1] <= 2 * product_tolerance()) & ~absent[:, -1]
        for chunk in close.nonzero().squeeze(1).split(max(1, len(rows) * BASE_BLOCK // (4 * len(columns)))):
            ids[chunk], exact[chunk] = _best_in_float64(rows, columns, chunk, k, unknown, excluded)
    absent = exact == -torch.inf
    return ids.masked_fill(absent, -1), exact.masked_fill(absent, 0).clamp(-1, 1).float()


def _hide(products: torch.Tensor, start: int, unknown: torch.Tensor, excluded: int | None, chunk: torch.Tensor | None = None) -> None:
    """Sets to minus infinity the columns of unknown titles and each query's own column."""
    stop = start + products.shape[1]
    products[:, unknown[(unknown >= start) & (unknown < stop)] - start] = -torch.inf
    if excluded is not None:
        own = excluded + (torch.arange(len(products), device=products.device) if chunk is None else chunk)
        here = ((own >= start) & (own < stop)).nonzero().squeeze(1)
        products[here, own[here] - start] = -torch.inf


def _top(products: torch.Tensor, wanted: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Values and columns of the ``wanted`` greatest of each row, by groups of columns when there are many."""
    width = products.shape[1]
    groups = width // GROUP
    if groups <= 2 * wanted:
        return products.topk(min(wanted, width), dim=1)
    folded = products[:, : groups * GROUP].view(len(products), GROUP, groups)  # column j of the fold: columns j, j + groups, …
    chosen = folded.amax(1).topk(wanted, dim=1).indices  # (rows, wanted)
    steps = torch.arange(GROUP, device=products.device) * groups
    places = (chosen[:, :, None] + steps).flatten(1)  # (rows, wanted * GROUP)
    rest = torch.arange(groups * GROUP, width, device=products.device).expand(len(products), -1)
    places = torch.cat([places, rest], 1)
    best, order = products.gather(1, places).topk(wanted, dim=1)
    return best, places.gather(1, order)


def _best_in_float64(
    rows: torch.Tensor, columns: torch.Tensor, chunk: torch.Tensor, k: int, unknown: torch.Tensor, excluded: int | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and float64 cosines of some rows of a block, over the whole base, where float32 could not tell the k-th."""
    exact = torch.cat([rows[chunk].double() @ part.double().T for part in columns.split(BASE_BLOCK)], 1)
    exact.mul_(10.0**DECIMALS).round_().div_(10.0**DECIMALS)
    _hide(exact, 0, unknown, excluded, chunk)
    last = exact.topk(k, dim=1).values[:, -1:]
    above, level = exact > last, exact == last
    kept = above | (level & (level.cumsum(1) <= k - above.sum(1, keepdim=True)))
    ids = kept.nonzero()[:, 1].view(len(chunk), k)  # ascending ids
    values, order = exact.gather(1, ids).sort(dim=1, descending=True, stable=True)
    return ids.gather(1, order), values
