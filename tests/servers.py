"""Servers that tests start as subprocesses."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from storage.database_templates import copy_template
from storage.stages import ROOT
from tests.ports import free_port


@contextlib.contextmanager
def running(
    command: Sequence[str | Path], log: Path, environment: dict[str, str], folder: Path = ROOT
) -> Iterator[subprocess.Popen[bytes]]:
    """Starts a process in its own process group, which is terminated at the end of the block."""
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
    """Returns whether a GET request succeeds."""
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(url, timeout=5).is_success
    return False


@contextlib.contextmanager
def prefect_server(folder: Path) -> Iterator[str]:
    """URL of a Prefect server with its home and its log in a new folder."""
    (folder / "prefect").mkdir()
    copy_template("prefect", folder / "prefect" / "prefect.db")  # saves 6 s of migrations
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    environment |= {"PREFECT_HOME": str(folder / "prefect"), "DO_NOT_TRACK": "1"}
    url, log = f"http://127.0.0.1:{free_port()}", folder / "prefect.log"
    command = [sys.executable, "-m", "flows.up.prefect_server", "--port", url.rpartition(":")[2]]
    with running(command, log, environment):
        wait_for(lambda: is_healthy(f"{url}/api/health"), 240, log.read_text)
        yield url
