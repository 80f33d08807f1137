"""Pools of worker processes that tests start."""

import psutil
import pytest

POOLS = ("processes", "dask", "ray")


def skip_without(pool: str) -> None:
    """Skips the test if the package of the pool is not installed."""
    for name, package in (("dask", "distributed"), ("ray", "ray")):
        if pool == name:
            pytest.importorskip(package, reason=f"{package} is not installed (extra {name})")


def kill_a_worker() -> None:
    """Kills a worker process of this process with SIGKILL, as the kernel does if memory is exhausted.

    If the pool is Ray, the process is computing a piece.
    """
    commands = {process: process.cmdline() for process in psutil.Process().children(recursive=True)}
    workers = [
        process
        for process, command in commands.items()
        if any("spawn_main" in part or part.startswith("ray::_") for part in command)
    ]
    workers[0].kill()
