"""Where pieces of work run: in this process, in others on this machine, or by Dask or Ray on several; one way for every stage.

What is submitted is a function of a module and small arguments, paths above all; results are files, so that nothing large goes
through a pipe and the result does not depend on where it was made. Workers elsewhere must see the home.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol

AUTOMATIC = -1  # the value of a setting that leaves the number of workers to a function


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class PoolSettings(Protocol):
    """What a stage's settings say of its pool."""

    @property
    def workers(self) -> int:
        """Processes beside this one; 0 does the work here. Where the pool is elsewhere, its own number counts."""
        ...

    @property
    def pool(self) -> str:
        """``processes``, ``dask`` or ``ray``."""
        ...

    @property
    def pool_address(self) -> str:
        """Of a Dask scheduler or Ray cluster; empty starts one here."""
        ...


class Future(Protocol):
    """A result to come."""

    def result(self) -> Any:
        """The result; waits for it, and raises what the function raised."""
        ...

    def done(self) -> bool:
        """Whether it is there."""
        ...


Submit = Callable[..., Future]


@contextmanager
def open_pool(settings: PoolSettings) -> Iterator[Submit]:
    """Where work is done: ``submit(function, *arguments)`` gives a future."""
    if settings.pool == "dask":
        from distributed import Client  # extra dask

        own: dict[str, Any] = {} if settings.pool_address else {"n_workers": settings.workers, "threads_per_worker": 1, "dashboard_address": None}
        with Client(settings.pool_address or None, **own) as client:
            yield lambda function, *given: client.submit(function, *given, pure=False)
    elif settings.pool == "ray":
        import ray  # pyright: ignore[reportMissingImports]  (extra ray)

        with ray.init(address=settings.pool_address or None, num_cpus=None if settings.pool_address else settings.workers):
            yield lambda function, *given: ray.remote(function).remote(*given).future()
    elif settings.workers == 0:
        yield _do_here
    else:  # spawn: a fork of a process with threads (DuckDB's, Prefect's) may hang
        executor = ProcessPoolExecutor(settings.workers, mp_context=multiprocessing.get_context("spawn"))
        try:
            yield executor.submit
        finally:
            executor.shutdown(wait=True, cancel_futures=True)


class _Done:
    """A result that is there."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def result(self) -> Any:
        return self._value

    def done(self) -> bool:
        return True


def _do_here(function: Callable[..., Any], *given: Any) -> _Done:
    return _Done(function(*given))
