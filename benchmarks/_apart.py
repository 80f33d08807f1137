"""Measures one call in a fresh process: CPU and wall seconds, and memory above what its imports and inputs take."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Measured:
    """What a call took.

    Attributes:
        cpu: Seconds of all threads.
        wall: Seconds on the clock.
        peak: Peak memory of the process, MiB.
        above: Of that, what came on top of imports and inputs, MiB.
        result: What the call returned.
    """

    cpu: float
    wall: float
    peak: float
    above: float
    result: Any


def measure_apart(prepare: Callable[..., Callable[[], Any]], *arguments: object) -> Measured:
    """Runs ``prepare(*arguments)`` and then, measured, the call that it returns, in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return Measured(*pool.apply(_measure, (prepare, arguments)))


def _measure(prepare: Callable[..., Callable[[], Any]], arguments: tuple[object, ...]) -> tuple[float, float, float, float, Any]:
    call = prepare(*arguments)
    before, cpu, wall = peak(), time.process_time(), time.perf_counter()
    result = call()
    return time.process_time() - cpu, time.perf_counter() - wall, peak(), peak() - before, result


def peak() -> float:
    """Peak resident memory of this process alone (getrusage would count the parent's before the fork), MiB."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
