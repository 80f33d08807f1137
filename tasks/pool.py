"""Pools of workers: this process, processes on this machine, or Dask or Ray on several machines.

Submitted functions must be importable and their arguments small, mostly paths; results are files. Workers on
other machines must mount the home folder.
"""

import itertools
import logging
import multiprocessing
import multiprocessing.connection
import multiprocessing.util
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from contextvars import ContextVar
from queue import SimpleQueue
from typing import Any

from storage.memory import configure_memory
from tasks.pool_settings import PoolSettings

log = logging.getLogger(__name__)

MIN_HELPER_TITLES = 10_000  # with fewer titles, starting a helper process (1 s) takes longer than it saves
MAX_HELPER_TITLES = 100_000  # with a million titles, the helper would retain 3 GB between stages
MAX_LOSSES = 3  # times that a pool of processes may break without completing a piece, as in Dask and Ray
Submit = Callable[..., Any]  # submit(function, *arguments) returns a future with result() and done()


@contextmanager
def open_pool(pool: str, workers: int, address: str = "") -> Iterator[Submit]:
    """Opens a pool and yields its ``submit``.

    Args:
        pool: ``processes``, ``dask`` or ``ray``.
        workers: Number of worker processes; 0 runs the functions in this process.
        address: Address of a Dask or Ray cluster, which determines the number of workers itself.
    """
    if pool == "dask":
        from distributed import Client  # extra dask

        # a free port: with None, the HTTP server of the scheduler uses port 8787, and warns if it is taken
        local_options: Any = {"n_workers": workers, "threads_per_worker": 1}
        local_options["dashboard_address"] = "127.0.0.1:0"
        with Client(address) if address else Client(**local_options) as client:
            yield lambda function, *args: client.submit(function, *args, pure=False)
    elif pool == "ray":
        import ray  # pyright: ignore[reportMissingImports]  (extra ray)

        with ray.init(address=address or None, num_cpus=None if address else workers):
            yield lambda function, *args: ray.remote(function).remote(*args).future()
    elif workers == 0:
        yield _run_inline
    else:
        with _processes(workers) as executor:
            yield executor.submit


def compute_pieces(
    pool: PoolSettings, workers: int, function: Callable[..., Any], pieces: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[int, Any]]:
    """Computes ``function(*piece)`` for each piece. Yields number and result of a piece when it is complete.

    If a worker process is lost, its piece is repeated, by Dask and Ray themselves. The function therefore
    publishes its result atomically, under a name that depends on the piece only.

    Args:
        pool: Settings of the pool.
        workers: Number of workers of a pool without an address; 0 computes the pieces in this process.
        function: Function that a worker can import.
        pieces: Arguments for each piece: small values and paths.
    """
    if not workers and pool.pool == "processes":
        yield from ((number, function(*piece)) for number, piece in enumerate(pieces))
        return
    remaining, losses = set(range(len(pieces))), 0
    while remaining:
        completed: SimpleQueue[Any] = SimpleQueue()
        try:
            with open_pool(pool.pool, max(1, workers), pool.pool_address) as submit:
                numbers = {submit(function, *pieces[number]): number for number in sorted(remaining)}
                for future in numbers:
                    future.add_done_callback(completed.put)
                while remaining:
                    future = completed.get()
                    result, number = future.result(), numbers.pop(future)
                    remaining.remove(number)
                    losses = 0
                    yield number, result
        except BrokenProcessPool:
            losses += 1
            if losses == MAX_LOSSES:
                raise
            log.warning("a worker process was lost; %d of %d pieces remain", len(remaining), len(pieces))


_helper: ContextVar[ProcessPoolExecutor | None] = ContextVar("helper", default=None)


@contextmanager
def helper_process() -> Iterator[None]:
    """Provides one helper process for ``helper_submit`` in the block; the first submission starts it."""
    with _processes(1) as executor:
        token = _helper.set(executor)
        try:
            yield
        finally:
            _helper.reset(token)


def helper_submit(titles: int) -> Submit:
    """Returns a function ``submit`` that runs a function in the helper process, in parallel to other stages.

    Outside a ``helper_process`` block, and for few or very many titles, the function runs in this process.
    """
    executor = _helper.get() if MIN_HELPER_TITLES < titles <= MAX_HELPER_TITLES else None
    return executor.submit if executor else _run_inline


def iterate(submit: Submit, function: Callable[..., Any], *args: Any) -> Generator[Any, None, Any]:
    """Runs a generator function in a pool of one process. Yields and returns the same values."""
    number = next(_generator_numbers)
    submit(_begin, number, function, *args).result()
    while True:
        is_over, value = submit(_advance, number).result()
        if is_over:
            return value
        yield value


_generator_numbers = itertools.count()
_generators: dict[int, Generator[Any, None, Any]] = {}  # generators of this process by number


def _begin(number: int, function: Callable[..., Any], *args: Any) -> None:
    _generators[number] = function(*args)


def _advance(number: int) -> tuple[bool, Any]:
    try:
        return False, next(_generators[number])
    except StopIteration as ended:
        del _generators[number]
        return True, ended.value


@contextmanager
def _processes(workers: int) -> Iterator[ProcessPoolExecutor]:
    spawn = multiprocessing.get_context("spawn")  # a fork of a process with threads (DuckDB's) may hang
    executor = ProcessPoolExecutor(workers, mp_context=spawn, initializer=start_worker)
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)


def start_worker() -> multiprocessing.util.Finalize:
    """Initializes a worker process. It ends with its parent, even while it waits for work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # handled by the parent
    configure_memory()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as in a nightly run; results depend on it in the last bits
    threading.Thread(target=_exit_with_parent, name="parent", daemon=True).start()
    return multiprocessing.util.Finalize(None, _exit_without_teardown, exitpriority=-1000)


@contextmanager
def worker_process() -> Iterator[None]:
    """Wraps the body of a process, so that an exception ends the process normally, with exit code 1.

    The finalizer cannot detect the exception: since Python 3.13 it runs after the exception was reported.
    """
    finalizer = start_worker()
    try:
        yield
    except BaseException:
        finalizer.cancel()
        raise


def _exit_without_teardown() -> None:
    """Ends a worker without cleaning up the interpreter, which would take half a second with torch."""
    sys.stdout.flush()
    os._exit(0)


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)


def _run_inline(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(function(*args, **kwargs))
    return future
