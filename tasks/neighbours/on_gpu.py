"""Exact nearest-neighbour search on a GPU.

The GPU computes products and selects candidates. The CPU sorts the candidates by cosines in float64, as in
similarity.py, so the result is the same as without a GPU.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from tasks.neighbours.rescoring import TOLERANCE, order_candidates

OutOfMemory = torch.OutOfMemoryError
PRODUCT_ENTRIES = 1 << 26  # entries of a matrix product: 256 MiB of GPU memory per thread


def torch_tolerance() -> float:
    """Returns a bound on the error of torch's float32 products of unit vectors."""
    return TOLERANCE if torch.get_float32_matmul_precision() == "highest" else 2e-2


def search_on_gpu(
    queries: np.ndarray, base: np.ndarray, k: int, candidates: int, exclude_self: bool
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yields the first row of each block of queries, and the ids and cosines of its neighbours.

    The ids and the cosines are both (queries, at most k).

    Args:
        queries: Vectors of queries, float32 (queries, dim), unit norm.
        base: Vectors of titles among which neighbours are searched, float32 (titles, dim), unit norm.
        k: Number of neighbours per query.
        candidates: Number of candidates per query that the GPU selects.
        exclude_self: Whether ``queries`` is ``base``, and a title is not its own neighbour.

    Raises:
        torch.OutOfMemoryError: The vectors and one matrix product do not fit in GPU memory.
    """
    base_on_gpu, step = torch.from_numpy(base).to("cuda"), max(1, PRODUCT_ENTRIES // len(base))

    def search_block(start: int) -> tuple[int, np.ndarray, np.ndarray]:
        block = slice(start, start + step)
        block_on_gpu = base_on_gpu[block] if exclude_self else torch.from_numpy(queries[block]).to("cuda")
        products = block_on_gpu @ base_on_gpu.T
        if exclude_self:
            products.diagonal(start).fill_(-torch.inf)
        values, ids = (result.cpu().numpy() for result in products.topk(candidates))
        ids, cosines = order_candidates(
            queries[block],
            base,
            k,
            np.where(values > -np.inf, ids, -1),
            values=values,
            self_offset=start if exclude_self else None,
            tolerance=torch_tolerance(),
        )
        return start, ids, cosines

    # While one thread sorts candidates, the GPU computes the products of the other threads.
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        yield from pool.map(search_block, range(0, len(queries), step))
