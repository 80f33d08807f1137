"""Servers that tests start as subprocesses."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from storage.stages import ROOT


@contextlib.contextmanager
def running(
    command: Sequence[str | Path], log: Path, environment: dict[str, str], folder: Path = ROOT
) -> Iterator[subprocess.Popen[bytes]]:
    """A process in its own process group; the block's end terminates the group."""
    with open(log, "ab") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        for name in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, name)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(15)


def wait_for(check: Callable[[], Any], seconds: float, explain: Callable[[], str]) -> Any:
    """Returns the first true result of ``check``; fails with the text of ``explain`` after a timeout."""
    deadline = time.monotonic() + seconds
    while not (result := check()):
        if time.monotonic() > deadline:
            pytest.fail(f"nothing after {seconds:.0f} s:\n{explain()[-4000:]}")
        time.sleep(0.3)
    return result


def is_healthy(url: str) -> bool:
    """Whether a GET request succeeds."""
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(url, timeout=5).is_success
    return False
