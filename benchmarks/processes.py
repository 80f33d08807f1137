"""Runs one call in a fresh process and measures it: CPU and wall seconds, and memory above what its imports
and inputs take.

A rival's process has the user's environment and none of ours (benchmarks/__init__.py); both have as many
threads as they are told, said to OpenMP and BLAS before anything is loaded.
"""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks import POLICY_IS_OURS, RIVAL

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


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


def call_apart(
    function: Callable[..., Any], *arguments: object, rival: bool = False, threads: int | None = None
) -> Any:
    """What ``function(*arguments)`` returns, called in a process of its own.

    Args:
        function: Importable, as its arguments and its result can be pickled.
        arguments: For it.
        rival: The process gets the environment without what GuideSpace sets.
        threads: Of OpenMP and BLAS; None leaves them to the libraries.
    """
    changed = ({RIVAL: "1"} if rival else {}) | (dict.fromkeys(THREADS, str(threads)) if threads else {})
    with _environment(changed, ("OMP_WAIT_POLICY",) if rival and POLICY_IS_OURS in os.environ else ()):
        pool = multiprocessing.get_context("spawn").Pool(
            1, os.dup2, (2, 1)
        )  # what a rival prints goes to standard error: our standard output may be JSON
    with pool:
        return pool.apply(function, arguments)


def measure_apart(
    prepare: Callable[..., Callable[[], Any]],
    *arguments: object,
    rival: bool = False,
    threads: int | None = None,
) -> Measured:
    """Runs ``prepare(*arguments)`` and then, measured, the call that it returns, in a process of its own (see
    ``call_apart``).
    """
    return Measured(*call_apart(_measure, prepare, arguments, rival=rival, threads=threads))


def _measure(
    prepare: Callable[..., Callable[[], Any]], arguments: tuple[object, ...]
) -> tuple[float, float, float, float, Any]:
    call = prepare(*arguments)
    before, cpu, wall = peak(), time.process_time(), time.perf_counter()
    result = call()
    return time.process_time() - cpu, time.perf_counter() - wall, peak(), peak() - before, result


@contextmanager
def _environment(changed: dict[str, str], removed: tuple[str, ...]) -> Iterator[None]:
    """Variables of this process while another is started."""
    kept = dict(os.environ)
    os.environ.update(changed)
    for name in removed:
        os.environ.pop(name, None)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)


def peak() -> float:
    """Peak resident memory of this process alone (getrusage would count the parent's before the fork),
    MiB.
    """
    with open("/proc/self/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
