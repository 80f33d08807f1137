"""A ``guidespace serve`` that runs while clients ask it."""

import datetime
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.flows.command import ROOT

STAND_IN = ROOT / "tests" / "storage" / "served_stand_in.py"
AT = datetime.datetime(2025, 3, 1, 20, tzinfo=datetime.UTC)
CLIENTS = 8
NEW = "A Film That No Guide Has"


@contextmanager
def serving(
    home: Path, log: Path, *arguments: str, **more: str
) -> Iterator[tuple[str, subprocess.Popen[bytes], Path]]:
    """Address, process and log of ``guidespace serve`` on a free port, with ``more`` in its environment."""
    known = {name: value for name, value in os.environ.items() if not name.startswith(("MLFLOW_", "GUIDE"))}
    command = [sys.executable, "-m", "flows", "serve", "--home", str(home), "--port", "0", *arguments]
    with open(log, "wb") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**known, "OMP_NUM_THREADS": "1", **more},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + 120
        while " at http" not in (printed := log.read_text(encoding="utf-8")):
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"guidespace serve did not come up:\n{printed}")
            time.sleep(0.1)
        yield printed.split(" at ")[1].split()[0], process, log
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def ask_by_clients(url: str, titles: list[str], ended: threading.Event) -> list[tuple[int, str]]:
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
