"""Calls a function in a fresh process and measures CPU seconds, wall seconds and memory.

A rival's process has the user's environment without our changes (benchmarks/__init__.py). OpenMP and BLAS get
the number of threads before they are loaded.
"""

import multiprocessing
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

from benchmarks import POLICY_IS_OURS, RIVAL
from benchmarks.claims import ROOT

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Measured(NamedTuple):
    """Resources and result of a call in a separate process.

    Attributes:
        cpu: CPU seconds of all threads.
        wall: Wall seconds.
        peak: Peak memory of the process, MiB.
        above: Part of the peak beyond imports and inputs, MiB.
        result: Value that the call returned.
    """

    cpu: float
    wall: float
    peak: float
    above: float
    result: Any


def call_apart(
    function: Callable[..., Any], *arguments: object, rival: bool = False, threads: int | None = None
) -> Any:
    """Returns ``function(*arguments)``, called in a fresh process that may start others.

    Args:
        function: Importable; its arguments and its result can be pickled.
        arguments: Arguments of the function.
        rival: Whether the process gets the environment without GuideSpace's settings.
        threads: Threads of OpenMP and BLAS; None leaves them to the libraries.
    """
    changed = ({RIVAL: "1"} if rival else {}) | (dict.fromkeys(THREADS, str(threads)) if threads else {})
    removed = ("OMP_WAIT_POLICY",) if rival and POLICY_IS_OURS in os.environ else ()
    # A rival's output goes to standard error, because ours may be JSON.
    options: dict[str, Any] = {"initializer": os.dup2, "initargs": (2, 1)}
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), **options) as pool:
        with _environment(changed, removed):
            future = pool.submit(function, *arguments)
        return future.result()


def measure_apart(
    prepare: Callable[..., Callable[[], Any]],
    *arguments: object,
    rival: bool = False,
    threads: int | None = None,
) -> Measured:
    """Calls ``prepare(*arguments)`` in a fresh process and measures the call that it returns."""
    return call_apart(_measure, prepare, arguments, rival=rival, threads=threads)


def repeat_apart(
    prepare: Callable[..., Callable[[], Any]],
    *arguments: object,
    repeats: int,
    clock: Callable[[], float] = time.process_time,
    rival: bool = False,
    one_core: bool = False,
) -> list[float]:
    """Returns the seconds of ``repeats`` calls in one fresh process, after a call that is not measured.

    Args:
        prepare: Importable; returns the call.
        arguments: Arguments of ``prepare``.
        repeats: Number of measured calls.
        clock: CPU seconds by default; ``time.perf_counter`` measures wall seconds.
        rival: Whether the process gets the environment without GuideSpace's settings.
        one_core: Whether all threads of the process share one core.
    """
    return call_apart(_repeat, prepare, arguments, repeats, clock, one_core, rival=rival, threads=1)


def _repeat(
    prepare: Callable[..., Callable[[], Any]],
    arguments: tuple[object, ...],
    repeats: int,
    clock: Callable[[], float],
    one_core: bool,
) -> list[float]:
    if one_core:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    call, seconds = prepare(*arguments), []
    call()
    for _ in range(repeats):
        started = clock()
        call()
        seconds.append(clock() - started)
    return seconds


def _measure(prepare: Callable[..., Callable[[], Any]], arguments: tuple[object, ...]) -> Measured:
    call = prepare(*arguments)
    before, cpu, wall = peak(), time.process_time(), time.perf_counter()
    result = call()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return Measured(cpu, wall, peak(), peak() - before, result)


@contextmanager
def _environment(changed: dict[str, str], removed: tuple[str, ...]) -> Iterator[None]:
    """Changes environment variables of this process while another process is started, then restores them."""
    original = dict(os.environ)
    os.environ.update(changed)
    for name in removed:
        os.environ.pop(name, None)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(original)


def peak() -> float:
    """Returns the peak resident memory of this process in MiB.

    getrusage would include the peak of the parent before the fork.
    """
    return memory("VmHWM")


def peak_of_workers() -> float:
    """Returns the peak resident memory of the largest process that this process has waited for, in MiB."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def memory(field: str) -> float:
    """Returns a field of /proc/self/status in MiB."""
    with open("/proc/self/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field)) / 1024


def run_guidespace(*arguments: object) -> None:
    """Runs a command of GuideSpace in a fresh process.

    Raises:
        subprocess.CalledProcessError: The command failed.
    """
    command = [sys.executable, "-m", "flows", *map(str, arguments)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)


def time_command(command: Sequence[str], environment: Mapping[str, str]) -> tuple[float, float, str]:
    """Runs a command; returns wall seconds, CPU seconds of all its processes, and the output.

    Raises:
        subprocess.CalledProcessError: The command failed.
    """
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, encoding="utf-8")
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, done.stdout
