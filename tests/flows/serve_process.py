"""Runs ``guidespace serve`` while clients send requests."""

import datetime
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.flows.command import ROOT
from tests.servers import running, wait_for

STAND_IN = ROOT / "tests" / "storage" / "served_stand_in.py"
AT = datetime.datetime(2025, 3, 1, 20, tzinfo=datetime.UTC)
CLIENTS = 8
NEW = "A Film That No Guide Has"


@contextmanager
def serving(
    home: Path,
    log: Path,
    *arguments: str,
    program: Sequence[str] = (sys.executable, "-m", "flows"),
    **more: str,
) -> Iterator[tuple[str, subprocess.Popen[bytes], Path]]:
    """Address, process and log of ``guidespace serve`` on a free port, with ``more`` in its environment;
    ``program`` is the command."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("MLFLOW_", "GUIDE"))}
    command = [*program, "serve", "--home", str(home), "--port", "0", *arguments]
    with running(command, log, {**inherited, "OMP_NUM_THREADS": "1", **more}) as process:
        printed = lambda: log.read_text(encoding="utf-8")  # noqa: E731
        wait_for(lambda: " at http" in printed() or process.poll() is not None, 120, printed)
        assert process.poll() is None, printed()
        yield printed().split(" at ")[1].split()[0], process, log


def request_by_clients(url: str, titles: list[str], ended: threading.Event) -> list[tuple[int, str]]:
    """Status and version of each answer to CLIENTS clients that ask until ``ended``."""
    found: list[tuple[int, str]] = []

    def ask(own: int) -> None:
        with httpx.Client(base_url=url, timeout=60) as client:
            place = own
            while not ended.wait(0.02):  # leaves the server time to load another model
                body = {"titles": [titles[place % len(titles)] if place % 5 else f"{NEW} {place}"]}
                answer = client.post("/similar", json=body)
                version = answer.json()["model"]["version"] if answer.status_code == 200 else ""
                found.append((answer.status_code, version))
                place += CLIENTS

    threads = [threading.Thread(target=ask, args=(own,)) for own in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found
