"""Measures calls in turn, so that other work on the machine slows all of them equally."""

import statistics
import time
from collections.abc import Callable, Mapping


def in_turn(
    calls: Mapping[str, Callable[[], object]],
    repeats: int,
    clock: Callable[[], float] = time.process_time,
    summary: Callable[[list[float]], float] = statistics.median,
) -> dict[str, float]:
    """Returns the median seconds of each call.

    Args:
        calls: Calls by name.
        repeats: Rounds; each makes every call once.
        clock: CPU seconds by default; ``time.perf_counter`` measures wall seconds.
        summary: Function of a call's seconds; the median by default.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            started = clock()
            call()
            seconds[name].append(clock() - started)
    return {name: summary(values) for name, values in seconds.items()}
