"""The search of similarity.py with its products and the choice of candidates on a GPU.

The candidates are ordered on the CPU in float64 like those of its tiles, so the result is the same.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from tasks.neighbours.rescoring import order_candidates

FEWEST_PAIRS = 1 << 26  # fewer take a core .2 seconds, no more than a GPU to begin with
PRODUCT = 1 << 26  # pairs a product: 256 MiB on the GPU for each thread


def worth_a_gpu(pairs: int) -> bool:
    """Whether so many pairs are compared on a GPU: there is one, and they are many."""
    return pairs >= FEWEST_PAIRS and torch.cuda.is_available()


def search_on_gpu(
    rows: np.ndarray, columns: np.ndarray, k: int, wanted: int, exclude_self: bool
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """First row, ids and cosines (rows, at most k) of some rows after the other, of ``wanted`` candidates.

    Raises:
        torch.OutOfMemoryError: The GPU has no room for the base and a product of each thread.
    """
    base, step = torch.from_numpy(columns).to("cuda"), max(1, PRODUCT // len(columns))

    def some(start: int) -> tuple[int, np.ndarray, np.ndarray]:
        part = rows[start : start + step]
        there = base[start : start + step] if exclude_self else torch.from_numpy(part).to("cuda")
        products = there @ base.T
        if exclude_self:
            products.diagonal(start).fill_(-torch.inf)
        values, ids = (found.cpu().numpy() for found in products.topk(wanted))
        own = start if exclude_self else None
        return start, *order_candidates(part, columns, k, np.where(values > -np.inf, ids, -1), values, own)

    # while a thread orders its candidates, the GPU multiplies for the others
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        yield from pool.map(some, range(0, len(rows), step))
