"""Threads without locks: all on one set of records (Hogwild), or each on its copy, merged from time to time.

Shared records pay where a record is long. Where it is short, two cores pass its line of memory to each other
at nearly every read: with one label, 50,000 features and 72 of them a sample, a sample took 948 ns of each of
two threads against 248 of one; with 125 labels 5,339 against 5,107. So short records of FTRL-proximal are
copied for each thread: its sums, of gradients and of squares, add up over samples in whatever order.

References:
    Niu, Recht, Ré, Wright. *Hogwild!: a lock-free approach to parallelizing stochastic gradient descent*.
    NIPS 2011.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, no_type_check

import numpy as np

from tasks.compiled import compiled

FEWEST, MOST = 512, 65536  # samples of each thread between two merges; fewer are not worth one


def share(threads: int, turns: int, step: Callable[[int], Any]) -> None:
    """Calls ``step`` with 0 to ``turns``, exclusive, each thread with the next one that is left."""
    left = iter(range(turns))  # the interpreter hands each number to one thread

    def work() -> None:
        for turn in left:
            step(turn)

    if threads == 1:
        work()
        return
    with ThreadPoolExecutor(threads) as pool:
        for future in [pool.submit(work) for _ in range(threads)]:
            future.result()


def merge(
    threads: int,
    order: np.ndarray,
    curvature: Sequence[np.ndarray],
    step: Callable[[np.ndarray, int, int, Sequence[np.ndarray]], Any],
    shared: Sequence[np.ndarray],
) -> None:
    """Visits samples in rounds: each thread its part of them, with copies, which are then merged.

    The sum of what threads did goes too far where each alone goes to the optimum. So a round is so short that
    no weight goes further than 1 / ``threads`` of the way to its optimum, by the bound 1/4 of the second
    derivative of the logistic loss; while that is shorter than ``FEWEST`` samples, one thread works alone.

    Args:
        threads: How many.
        order: Samples, int64 (visits,).
        curvature: Of each of ``shared``: learning rate times mean square of the value, float32 (rows,).
        step: Of a part of the order, samples of this call before it, threads at work, and what to change.
        shared: Records and state of the intercepts, of sums and roots (rows, 2, labels); changed in place.
    """
    hottest = [np.argsort(-own)[:64] for own in curvature]
    begin, copies, add = 0, [], compiled(_add)

    def work(thread: int) -> None:
        part = order[begin + thread * count : begin + (thread + 1) * count]
        step(part, begin, threads, [own[thread] for own in copies])

    def tidy(thread: int) -> None:
        for own, copied in zip(shared, copies, strict=True):
            first, last = (len(own) * edge // threads for edge in (thread, thread + 1))
            add(own, copied, first, last)

    with ThreadPoolExecutor(threads) as pool:
        while begin < len(order):
            bounds = (
                own[rows, 1].min(axis=1) / (0.25 * bent[rows] * threads)
                for own, bent, rows in zip(shared, curvature, hottest, strict=True)
            )
            count = min(
                MOST, int(min(float(own.min()) for own in bounds)), -(-(len(order) - begin) // threads)
            )
            if count < FEWEST:
                step(order[begin : begin + FEWEST], begin, 1, shared)
                begin, copies = begin + FEWEST, []
                continue
            copies = copies or [np.stack([own] * threads) for own in shared]
            list(pool.map(work, range(threads)))
            list(pool.map(tidy, range(threads)))
            begin += count * threads


@no_type_check
def _add(shared, copies, first, last):
    """Adds up what threads added to sums and squares of roots, and brings all copies to the result."""
    for row in range(first, last):
        for label in range(shared.shape[2]):
            total, root = shared[row, 0, label], shared[row, 1, label]
            added, square = np.float32(0), root * root
            for thread in range(len(copies)):
                own = copies[thread, row, 1, label]
                if own != root:
                    added += copies[thread, row, 0, label] - total
                    square += (own - root) * (own + root)
            if square == root * root:
                continue
            total, root = total + added, np.sqrt(square)
            shared[row, 0, label], shared[row, 1, label] = total, root
            for thread in range(len(copies)):
                copies[thread, row, 0, label], copies[thread, row, 1, label] = total, root
