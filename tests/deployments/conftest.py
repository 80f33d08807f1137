"""A Prefect server, a work pool, our deployments and a worker, as deployments/README.md sets them up; on
loopback, in a temporary folder."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from flows.up.prefect_client import PrefectAuth
from storage.database_templates import copy_template
from storage.stages import ROOT
from tests.busy import ask_until_answered, post_until_answered
from tests.ports import free_port
from tests.servers import running, wait_for

PREFECT = [sys.executable, "-m", "prefect"]
ENDED = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}
SECONDS = 240.0  # for what takes some on a machine that has nothing else to do


@dataclass(frozen=True)
class Site:
    """A Prefect server with our deployments and one worker.

    Attributes:
        url: Of the UI; the API is below it.
        place: Folder of everything it writes.
        environment: For more processes that talk to it.
        api: Client of the REST API.
        worker: Process id of the worker.
    """

    url: str
    place: Path
    environment: dict[str, str]
    api: httpx.Client
    worker: int

    def post(self, path: str, content: object = None) -> Any:
        """Sends a POST request that must succeed, and returns the answer."""
        return post_until_answered(self.api, path, content)

    def get(self, path: str) -> Any:
        """Sends a GET request that must succeed, and returns the answer."""
        response = ask_until_answered(lambda: self.api.get(path), httpx.TimeoutException)
        assert response.is_success, f"{path}: {response.status_code} {response.text}"
        return response.json()

    def delete(self, path: str) -> None:
        """Deletes an object that must exist; after a timeout it may already be deleted."""
        response = ask_until_answered(lambda: self.api.delete(path), httpx.TimeoutException)
        assert response.is_success or response.status_code == 404, f"{path}: {response.status_code}"

    def deployment(self, name: str) -> dict[str, Any]:
        """The deployment with that name, which starts with its flow if that is not the nightly flow."""
        return self.get(f"/deployments/name/{name if '/' in name else f'nightly/{name}'}")

    def trigger(self, deployment: str, parameters: dict[str, Any], **further: str) -> str:
        """Starts a flow run of a deployment, named ``name`` if set, and returns its id."""
        content = {"parameters": parameters, "state": {"type": "SCHEDULED"}, **further}
        return self.post(f"/deployments/{self.deployment(deployment)['id']}/create_flow_run", content)["id"]

    def wait(self, flow_run: str, seconds: float = SECONDS) -> dict[str, Any]:
        """Waits until a flow run has ended, and returns it."""
        return wait_for(
            lambda: found if (found := self.get(f"/flow_runs/{flow_run}"))["state_type"] in ENDED else None,
            seconds,
            lambda: self.logs(flow_run),
        )

    def wait_until(self, check: Callable[[], Any]) -> Any:
        """Returns the first true result of ``check``; after a timeout, fails with the log of the worker."""
        return wait_for(
            check,
            SECONDS,
            lambda: self._log("worker", 6000) + self._log("server", 3000),
        )

    def logs(self, flow_run: str) -> str:
        """Returns the logs of a flow run and its tasks, and the end of the worker's own log."""
        lines = self.post(
            "/logs/filter", {"logs": {"flow_run_id": {"any_": [flow_run]}}, "sort": "TIMESTAMP_ASC"}
        )
        return "\n".join(line["message"] for line in lines) + "\n-- worker:\n" + self._log("worker", 4000)

    def _log(self, name: str, length: int) -> str:
        """Returns the end of the log of a process, or "" if there is none."""
        file = self.place / f"{name}.log"
        return file.read_text(encoding="utf-8")[-length:] if file.exists() else ""

    def task_states(self, flow_run: str) -> dict[str, str]:
        """Maps the name of each task run to the name of its state ("Completed", "Cached")."""
        runs = self.post("/task_runs/filter", {"task_runs": {"flow_run_id": {"any_": [flow_run]}}})
        return {run["name"]: run["state_name"] for run in runs}

    @contextlib.contextmanager
    def automation(self, within: int) -> Iterator[str]:
        """Id of a copy of deployments/automations.yaml that acts after ``within`` silent seconds."""
        document = yaml.safe_load((ROOT / "deployments" / "automations.yaml").read_text(encoding="utf-8"))[
            "automations"
        ][0]
        document["trigger"]["within"] = within
        copy = self.post("/automations/", {**document, "name": "quick"})["id"]
        try:
            yield copy
        finally:
            self.delete(f"/automations/{copy}")

    def insist(self, send: Callable[[], object], check: Callable[[], bool]) -> None:
        """Sends an event until the triggers have counted it.

        Prefect drops one when SQLite is locked: it is tried four times within a second, each time reading
        before it writes, which fails at once when another connection has written between.
        """

        def sent() -> bool:
            send()
            deadline = time.monotonic() + 5
            while not (heard := check()) and time.monotonic() < deadline:
                time.sleep(0.3)
            return heard

        self.wait_until(sent)

    def awaited(self, automation: str) -> set[str]:
        """Flow runs that an automation will mark Crashed unless it hears of them, from the server's database:
        the API lists events as they are stored, which is apart from what the triggers make of them.
        """
        database = f"file:{self.place / 'home' / 'prefect.db'}?mode=ro"
        query = "SELECT bucketing_key FROM automation_bucket WHERE automation_id = ? AND count = 0"
        with contextlib.closing(sqlite3.connect(database, uri=True, timeout=30)) as connection:
            keys = connection.execute(query, [automation]).fetchall()
        return {key.partition("prefect.flow-run.")[2].rstrip('"]') for (key,) in keys}


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Starts the server without a worker."""
    place = tmp_path_factory.mktemp("prefect")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "MLFLOW_"))
    }
    environment |= {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1",
        "DO_NOT_TRACK": "1",
        "PREFECT_HOME": str(place / "home"), "PREFECT_API_URL": f"{url}/api",
        "PREFECT_SERVER_UI_API_URL": f"{url}/api",
        "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": url, "PREFECT_SERVER_API_CSRF_PROTECTION_ENABLED": "true",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "PREFECT_WORKER_QUERY_SECONDS": "1",
    }  # fmt: skip

    def healthy() -> bool:
        try:
            return api.get("/health").is_success
        except httpx.TransportError:
            return False

    (place / "home").mkdir()
    copy_template("prefect", place / "home" / "prefect.db")
    command = [sys.executable, "-m", "flows.up.prefect_server", "--port", str(port)]
    log = place / "server.log"
    # the server closes a connection after 5 s without a request, at times just as the next one is sent
    limits = httpx.Limits(keepalive_expiry=2)
    with (
        httpx.Client(base_url=f"{url}/api", timeout=30, limits=limits, auth=PrefectAuth()) as api,
        running(command, log, environment),
    ):
        wait_for(healthy, SECONDS, log.read_text)
        yield Site(url, place, environment, api, 0)


@pytest.fixture(scope="session")
def site(server: Site) -> Iterator[Site]:
    """Starts the server with our deployments and a worker."""

    def prefect(*arguments: str) -> None:
        done = subprocess.run(
            [*PREFECT, "--no-prompt", *arguments],
            cwd=ROOT,
            env=server.environment,
            capture_output=True,
            encoding="utf-8",
            timeout=180,
        )
        assert done.returncode == 0, f"prefect {' '.join(arguments)}:\n{done.stdout}\n{done.stderr}"

    prefect("work-pool", "create", "guidespace", "--type", "process")
    prefect("automation", "create", "--from-file", "deployments/automations.yaml")
    for _ in range(2):  # over one that is there, as after an upgrade, and over its own
        subprocess.run(
            [sys.executable, "-m", "deployments.automations"],
            cwd=ROOT,
            env=server.environment,
            check=True,
            timeout=180,
        )
    prefect("deploy", "--all", "--prefect-file", "deployments/prefect.yaml")
    command = [*PREFECT, "worker", "start", "--pool", "guidespace", "--name", "tester"]
    with running(command, server.place / "worker.log", server.environment) as worker:
        yield dataclasses.replace(server, worker=worker.pid)


@pytest.fixture
def two_workers(site: Site) -> Iterator[set[int]]:
    """Process ids of two workers of the pool ``several``, a run at a time each, as on two machines that mount
    the homes; the deployment ``ingest/several`` is ``ingest`` for them.
    """
    with contextlib.ExitStack() as stack:
        workers = set()
        for name in ("one", "two"):
            command = [*PREFECT, "worker", "start", "--pool", "several", "--type", "process", "--limit", "1"]
            log = site.place / f"worker-{name}.log"
            started = running([*command, "--name", name], log, site.environment)
            workers.add(stack.enter_context(started).pid)
        online = {"workers": {"status": {"any_": ["ONLINE"]}}}
        site.wait_until(lambda: site.api.get("/work_pools/several").is_success)
        site.wait_until(lambda: len(site.post("/work_pools/several/workers/filter", online)) == 2)
        about = site.deployment("ingest/ingest")
        kept = ("flow_id", "entrypoint", "parameters", "parameter_openapi_schema", "pull_steps")
        copy = {name: about[name] for name in kept}
        site.post("/deployments/", {**copy, "name": "several", "work_pool_name": "several"})
        yield workers
