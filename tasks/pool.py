"""Where pieces of work run: in this process, in others on this machine, or by Dask or Ray on several.

What is submitted is a function of a module and small arguments, above all paths; results are files. Workers
elsewhere must mount the home folder.
"""

import itertools
import multiprocessing
import multiprocessing.connection
import multiprocessing.util
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from storage.memory import configure_memory

APART = 10_000  # titles that are worth a process, which takes 1 s to start
SHARED = 100_000  # titles whose stages share it; of a million, what it keeps from one to the next is 3 GB
AUTOMATIC = -1  # the value of a setting that leaves the number of workers to a function
Submit = Callable[..., Any]  # submit(function, *arguments) gives a future with result() and done()


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def open_pool(pool: str, workers: int, address: str = "") -> Iterator[Submit]:
    """Opens a pool (``processes``, ``dask`` or ``ray``) and gives its ``submit``.

    ``workers`` are processes beside this one, 0 works here; a cluster at an address has its own number.
    """
    if pool == "dask":
        from distributed import Client  # extra dask

        own: Any = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
        with Client(address) if address else Client(**own) as client:
            yield lambda function, *given: client.submit(function, *given, pure=False)
    elif pool == "ray":
        import ray  # pyright: ignore[reportMissingImports]  (extra ray)

        with ray.init(address=address or None, num_cpus=None if address else workers):
            yield lambda function, *given: ray.remote(function).remote(*given).future()
    elif workers == 0:
        yield _work_here
    else:
        with _processes(workers) as executor:
            yield executor.submit


_beside: ContextVar[ProcessPoolExecutor | None] = ContextVar("beside", default=None)


@contextmanager
def process_beside() -> Iterator[None]:
    """In the block, one process does what is submitted to ``beside``, started by the first that is."""
    with _processes(1) as executor:
        token = _beside.set(executor)
        try:
            yield
        finally:
            _beside.reset(token)


def beside(titles: int) -> Submit:
    """The ``submit`` of the process beside this one, or of this one: for few titles or very many of them, and
    where there is no process beside.

    A stage that runs beside others holds up their Python code as a thread.
    """
    executor = _beside.get() if APART < titles <= SHARED else None
    return executor.submit if executor else _work_here


def iterate(submit: Submit, function: Callable[..., Any], *given: Any) -> Generator[Any, None, Any]:
    """Runs a generator function in a pool of one process; yields and returns what that does."""
    number = next(_numbers)
    submit(_begin, number, function, *given).result()
    while True:
        is_over, value = submit(_advance, number).result()
        if is_over:
            return value
        yield value


_numbers = itertools.count()
_begun: dict[int, Generator[Any, None, Any]] = {}


def _begin(number: int, function: Callable[..., Any], *given: Any) -> None:
    _begun[number] = function(*given)


def _advance(number: int) -> tuple[bool, Any]:
    try:
        return False, next(_begun[number])
    except StopIteration as ended:
        del _begun[number]
        return True, ended.value


@contextmanager
def _processes(workers: int) -> Iterator[ProcessPoolExecutor]:
    spawn = multiprocessing.get_context("spawn")  # a fork of a process with threads (DuckDB's) may hang
    executor = ProcessPoolExecutor(workers, mp_context=spawn, initializer=begin_worker)
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)


def begin_worker() -> multiprocessing.util.Finalize:
    """From now on this process ends once its parent has: a worker that waits for work never would."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's affair
    configure_memory()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as a night has: the number of threads decides the last bits
    threading.Thread(target=_await_parent, name="parent", daemon=True).start()
    return multiprocessing.util.Finalize(None, _leave, exitpriority=-1000)


@contextmanager
def worker_process() -> Iterator[None]:
    """The body of a process that may fail: a failure ends it with the interpreter's teardown and code 1.

    The finalizer cannot tell: since Python 3.13 it runs after the exception was reported.
    """
    leave = begin_worker()
    try:
        yield
    except BaseException:
        leave.cancel()
        raise


def _leave() -> None:
    """Ends a worker without the interpreter's teardown, which takes half a second once torch is imported."""
    sys.stdout.flush()
    os._exit(0)


def _await_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)


def _work_here(function: Callable[..., Any], *given: Any, **named: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(function(*given, **named))
    return future
