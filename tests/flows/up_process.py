"""A running ``guidespace up`` for tests that use its servers."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
import psutil

from flows.up.prefect_client import make_client
from flows.up.processes import ProcessIdentity, terminate
from tests.busy import ask_until_answered, post_until_answered
from tests.flows.command import ROOT
from tests.servers import wait_for

ENDED = ("COMPLETED", "FAILED", "CRASHED")
SECONDS = 480.0  # for what takes some on a machine that has nothing else to do


@dataclass
class Up:
    """A running ``guidespace up``; ``auth`` is a user and password for both servers."""

    home: Path
    process: subprocess.Popen[bytes]
    printed: Path
    record: dict[str, Any]
    auth: tuple[str, str] | None = None

    @cached_property
    def api(self) -> httpx.Client:
        """Client of Prefect's API."""
        return make_client(self.record["prefect"], ":".join(self.auth or ()), timeout=30)

    def post(self, path: str, content: object = None) -> Any:
        """Sends a request to Prefect, and returns the answer."""
        return post_until_answered(self.api, path, content)

    def get(self, path: str) -> Any:
        return ask_until_answered(lambda: self.api.get(path)).json()

    def patch(self, path: str, content: object) -> None:
        assert ask_until_answered(lambda: self.api.patch(path, json=content)).is_success

    def trigger(self, deployment: str, parameters: dict[str, Any]) -> str:
        """Starts a run of the nightly flow, and returns its id."""
        about = self.get(f"/deployments/name/nightly/{deployment}")
        content = {"parameters": parameters, "state": {"type": "SCHEDULED"}}
        return self.post(f"/deployments/{about['id']}/create_flow_run", content)["id"]

    def wait(self, flow_run: str) -> None:
        """Waits until a flow run has completed."""
        log = self.home / "logs" / "worker.log"
        until(lambda: self.get(f"/flow_runs/{flow_run}")["state_type"] in ENDED, log.read_text)
        assert self.get(f"/flow_runs/{flow_run}")["state_name"] == "Completed", log.read_text(
            encoding="utf-8"
        )

    def tree(self) -> list[psutil.Process]:
        """Returns the processes that ``up`` has started, with their descendants."""
        children = [psutil.Process(each["pid"]) for each in self.record["processes"]]
        return [each for child in children for each in (child, *child.children(recursive=True))]


def until(check: Callable[[], Any], told: Callable[[], str] = str) -> Any:
    """Returns the first true result of ``check``."""
    return wait_for(check, SECONDS, told)


@contextmanager
def standing(home: Path, *arguments: str, auth: tuple[str, str] | None = None, **more: str) -> Iterator[Up]:
    """Runs the command, with ``more`` in its environment, until the end of the block."""
    printed = home.parent / f"printed-{time.monotonic_ns()}.txt"
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "MLFLOW_"))
    } | {"PREFECT_WORKER_QUERY_SECONDS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    with open(printed, "wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "flows", "up", "--home", str(home), *arguments],
            cwd=ROOT, env=environment | more, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip
    up = Up(home, process, printed, {}, auth)
    try:
        until(
            lambda: "Started in" in printed.read_text(encoding="utf-8") or process.poll() is not None,
            printed.read_text,
        )
        assert process.poll() is None, printed.read_text(encoding="utf-8")
        up.record = json.loads((home / "up.json").read_text(encoding="utf-8"))
        yield up
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        terminate([ProcessIdentity(**each) for each in up.record.get("processes", ())], 1.0)
