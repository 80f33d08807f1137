"""Runs functions in pools of workers: this process, other processes, or Dask or Ray on several machines.

Workers must be able to import a submitted function. Its arguments must be small, such as paths, and it writes
its results to files. Workers on other machines must mount the home folder.
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
MAX_LOSSES = 3  # a run fails if this many process pools in succession break without completing a piece
Submit = Callable[..., Any]  # submit(function, *arguments) returns a future with result() and done()


@contextmanager
def open_pool(pool: str, workers: int, address: str = "") -> Iterator[Submit]:
    """Opens a pool and yields a function that submits functions to its workers (see ``Submit``).

    Args:
        pool: ``processes``, ``dask`` or ``ray``.
        workers: Number of worker processes; 0 runs the functions in this process.
        address: Address of a Dask or Ray cluster; ``workers`` is then ignored. Empty: workers are started on
            this machine.
    """
    if pool == "dask":
        from distributed import Client  # extra dask

        # Port 0 selects a free port. By default, the scheduler uses port 8787 and warns if it is in use.
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
        with _process_pool(workers) as executor:
            yield executor.submit


def compute_pieces(
    pool: PoolSettings, workers: int, function: Callable[..., Any], pieces: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[int, Any]]:
    """Computes ``function(*piece)`` for each piece. Yields (index, result) of a piece when it is complete.

    If a worker process is lost, its piece is computed again (Dask and Ray do this themselves). Therefore,
    ``function`` must write its result atomically, to a file whose name depends only on the piece.

    Args:
        pool: Settings of the pool.
        workers: Number of workers of a pool without an address; 0 computes the pieces in this process.
        function: Function that the workers can import.
        pieces: Arguments of ``function`` for each piece: small values and paths.
    """
    if not workers and pool.pool == "processes":
        yield from ((index, function(*piece)) for index, piece in enumerate(pieces))
        return
    remaining_indices, losses = set(range(len(pieces))), 0
    while remaining_indices:
        completed_futures: SimpleQueue[Any] = SimpleQueue()
        try:
            with open_pool(pool.pool, max(1, workers), pool.pool_address) as submit:
                indices = {submit(function, *pieces[index]): index for index in sorted(remaining_indices)}
                for future in indices:
                    future.add_done_callback(completed_futures.put)
                while remaining_indices:
                    future = completed_futures.get()
                    result, index = future.result(), indices.pop(future)
                    remaining_indices.remove(index)
                    losses = 0
                    yield index, result
        except BrokenProcessPool:
            losses += 1
            if losses == MAX_LOSSES:
                raise
            message = "a worker process was lost; a new pool computes the remaining %d of %d pieces"
            log.warning(message, len(remaining_indices), len(pieces))


_helper: ContextVar[ProcessPoolExecutor | None] = ContextVar("helper", default=None)


@contextmanager
def helper_process() -> Iterator[None]:
    """Within the block, ``helper_submit`` uses one helper process, which the first submission starts."""
    with _process_pool(1) as executor:
        token = _helper.set(executor)
        try:
            yield
        finally:
            _helper.reset(token)


def helper_submit(title_count: int) -> Submit:
    """Returns a function that submits work to the helper process, in parallel to other stages.

    Submitted functions run in this process outside of a ``helper_process`` block, or if the number of titles
    is at most MIN_HELPER_TITLES or larger than MAX_HELPER_TITLES.
    """
    executor = _helper.get() if MIN_HELPER_TITLES < title_count <= MAX_HELPER_TITLES else None
    return executor.submit if executor else _run_inline


def iterate_in_pool(submit: Submit, function: Callable[..., Any], *args: Any) -> Generator[Any, None, Any]:
    """Runs a generator function in a pool of one process; yields and returns the values of the generator."""
    number = next(_generator_numbers)
    submit(_begin, number, function, *args).result()
    while True:
        is_exhausted, value = submit(_advance, number).result()
        if is_exhausted:
            return value
        yield value


_generator_numbers = itertools.count()
_generators: dict[int, Generator[Any, None, Any]] = {}  # generators of this process by number


def _begin(number: int, function: Callable[..., Any], *args: Any) -> None:
    _generators[number] = function(*args)


def _advance(number: int) -> tuple[bool, Any]:
    """Returns (False, next value) of a generator, or (True, return value) if it is exhausted."""
    try:
        return False, next(_generators[number])
    except StopIteration as stop:
        del _generators[number]
        return True, stop.value


@contextmanager
def _process_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    spawn = multiprocessing.get_context("spawn")  # a forked process may hang because of DuckDB's threads
    executor = ProcessPoolExecutor(workers, mp_context=spawn, initializer=start_worker)
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)


def start_worker() -> multiprocessing.util.Finalize:
    """Initializes a worker process, so that it ends when its parent ends, even while it waits for work.

    Returns:
        The finalizer that ends the process without cleaning up the interpreter.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles interrupts
    configure_memory()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as in a nightly run: the last bits of results depend on it
    threading.Thread(target=_exit_with_parent, name="parent", daemon=True).start()
    return multiprocessing.util.Finalize(None, _exit_without_teardown, exitpriority=-1000)


@contextmanager
def worker_process() -> Iterator[None]:
    """Wraps the work of a worker process, so that an exception ends the process with exit code 1.

    The finalizer of ``start_worker`` would end it with 0. It cannot detect the exception, because since
    Python 3.13 it runs after the exception was reported.
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
