"""Blocks of the kernel on several threads: as many as torch computes with, each a block at a time.

One product of 1,024 x 1,024 is too small to be shared between threads, and what follows it is numpy's, which runs on one.
So each worker does whole blocks; products, comparisons and sorts let the other workers run meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Results of ``work``, in the items' order; at most two a thread are finished and not yet taken.

    Args:
        work: Called in ``torch.get_num_threads()`` threads, in each of which torch computes alone.
        items: What it is called with; taken from here, in order.
    """
    threads = torch.get_num_threads()
    if threads == 1:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        waiting = deque()
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
            torch.set_num_threads(threads)  # a worker's setting is also the one that new threads begin with
