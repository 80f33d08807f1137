"""Trains with several threads without locks, on shared records (Hogwild) or on copies per thread.

Sharing is efficient for long records: with 125 labels, training on a sample takes 5,339 ns on each of two
threads, and 5,107 ns on one thread. For short records, two cores exchange a cache line at nearly every
access: with one label and 72 features per sample, a sample takes 948 ns on each of two threads, and 248 ns on
one thread. Therefore, each thread gets a copy of short records of FTRL-proximal. The copies can be merged,
because the sums of gradients and of squared gradients do not depend on the order of samples.

References:
    Niu, Recht, Ré, Wright. *Hogwild!: a lock-free approach to parallelizing stochastic gradient descent*.
    NIPS 2011.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, no_type_check

import numpy as np

from tasks.compiled import compiled

MIN_ROUND, MAX_ROUND = 512, 65536  # samples per thread between two merges


def run_shared(threads: int, turns: int, step: Callable[[int], Any]) -> None:
    """Calls ``step(turn)`` for each turn in ``range(turns)``. Each thread takes the next remaining turn."""
    # The interpreter lock prevents two threads from getting the same turn.
    remaining_turns = iter(range(turns))

    def run_turns() -> None:
        for turn in remaining_turns:
            step(turn)

    if threads == 1:
        run_turns()
        return
    with ThreadPoolExecutor(threads) as pool:
        for future in [pool.submit(run_turns) for _ in range(threads)]:
            future.result()


def run_merged(
    threads: int,
    order: np.ndarray,
    curvature: Sequence[np.ndarray],
    train: Callable[[np.ndarray, int, int, Sequence[np.ndarray]], Any],
    shared: Sequence[np.ndarray],
) -> None:
    """Trains in rounds: each thread trains a copy on its part of the samples, then the copies are merged.

    If every thread reached the optimum, the sum of their changes would overshoot it. Therefore, a round is so
    short that no thread moves a weight by more than 1 / ``threads`` of the distance to its optimum. (The
    second derivative of the logistic loss is at most 1/4.) If this limit is below ``MIN_ROUND`` samples, only
    one thread trains for MIN_ROUND samples.

    Args:
        threads: Number of threads.
        order: Sample numbers in the order of visits, int64 (visits,).
        curvature: For each array in ``shared``, the learning rate times the mean squared value of each
            feature, float32 (rows,). Rows with 0, which no sample uses, do not limit a round.
        train: Function that trains on a part of the order. Its arguments are this part, the number of samples
            before the part, the number of active threads, and the arrays to change.
        shared: Records and intercept state, (rows, 2, labels): sums of gradients, then roots of the sums of
            squared gradients. Changed in place.
    """
    frequent_rows = [np.argsort(-rates)[: min(64, np.count_nonzero(rates))] for rates in curvature]
    begin, copies, merge = 0, [], compiled(_merge_copies)

    def run_thread(thread: int) -> None:
        part = order[begin + thread * count : begin + (thread + 1) * count]
        train(part, begin, threads, [thread_copies[thread] for thread_copies in copies])

    def merge_rows(thread: int) -> None:
        for target, thread_copies in zip(shared, copies, strict=True):
            begin_row, end_row = (len(target) * edge // threads for edge in (thread, thread + 1))
            merge(target, thread_copies, begin_row, end_row)

    with ThreadPoolExecutor(threads) as pool:
        while begin < len(order):
            bounds = (
                records[rows, 1].min(axis=1) / (0.25 * rates[rows] * threads)
                for records, rates, rows in zip(shared, curvature, frequent_rows, strict=True)
            )
            count = min(
                MAX_ROUND,
                int(min(float(bound.min(initial=MAX_ROUND)) for bound in bounds)),
                -(-(len(order) - begin) // threads),
            )
            if count < MIN_ROUND:
                train(order[begin : begin + MIN_ROUND], begin, 1, shared)
                begin, copies = begin + MIN_ROUND, []
                continue
            copies = copies or [np.stack([records] * threads) for records in shared]
            list(pool.map(run_thread, range(threads)))
            list(pool.map(merge_rows, range(threads)))
            begin += count * threads


@no_type_check
def _merge_copies(shared, copies, begin_row, end_row):
    """Adds the changes in all copies to rows of ``shared``, and writes the new rows to all copies."""
    for row in range(begin_row, end_row):
        for label in range(shared.shape[2]):
            total, root = shared[row, 0, label], shared[row, 1, label]
            sum_change, square = np.float32(0), root * root
            for thread in range(len(copies)):
                copied_root = copies[thread, row, 1, label]
                if copied_root != root:
                    sum_change += copies[thread, row, 0, label] - total
                    square += (copied_root - root) * (copied_root + root)
            if square == root * root:
                continue
            total, root = total + sum_change, np.sqrt(square)
            shared[row, 0, label], shared[row, 1, label] = total, root
            for thread in range(len(copies)):
                copies[thread, row, 0, label], copies[thread, row, 1, label] = total, root
