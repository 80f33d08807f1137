"""Where pieces of work run: in this process, in others on this machine, or by Dask or Ray on several.

What is submitted is a function of a module and small arguments, above all paths; results are files. Workers
elsewhere must mount the home folder.
"""

import multiprocessing
import multiprocessing.connection
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

from tasks.memory import spare_memory

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
    else:  # spawn: a fork of a process with threads (DuckDB's, Prefect's) may hang
        spawn = multiprocessing.get_context("spawn")
        executor = ProcessPoolExecutor(workers, mp_context=spawn, initializer=begin_worker)
        try:
            yield executor.submit
        finally:
            executor.shutdown(wait=True, cancel_futures=True)


def begin_worker() -> None:
    """From now on this process ends once its parent has: a worker that waits for work never would."""
    spare_memory()
    threading.Thread(target=_await_parent, name="parent", daemon=True).start()


def _await_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)


def _work_here(function: Callable[..., Any], *given: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(function(*given))
    return future
