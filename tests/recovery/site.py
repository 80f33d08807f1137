"""Prefect's server, MLflow's server and a worker on PostgreSQL, as compose.yaml arranges them; each of the
four can be killed and started again in its place."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil

from flows.up.processes import ProcessIdentity, start_process, terminate
from tests.flows.command import QUICK_NIGHT, ROOT, SAMPLE
from tests.ports import free_port
from tests.postgres import find_program
from tests.recovery.nights import SECONDS, environment
from tests.servers import is_healthy, wait_for

ENDED = ("COMPLETED", "FAILED", "CRASHED")
PYTHON = (sys.executable, "-m")


class Servers:
    """The four processes: PostgreSQL, Prefect, MLflow and the worker.

    Attributes:
        environment: For processes that talk to the servers.
        log: What the worker and its flow runs print.
    """

    def __init__(self, place: Path) -> None:
        program, self._place = find_program("postgres"), place
        self._data = Path(tempfile.mkdtemp(prefix="guidespace-postgres-"))
        self._as_user = ("runuser", "-u", "postgres", "--") if os.geteuid() == 0 else ()
        if self._as_user:  # it refuses root, and pytest's folders are root's alone
            shutil.chown(self._data, "postgres")
        self._ports = {name: free_port() for name in ("database", "prefect", "mlflow")}
        self._running: dict[str, ProcessIdentity] = {}
        self.log = place / "worker.log"
        self.api = f"http://127.0.0.1:{self._ports['prefect']}/api"
        self.mlflow = f"http://127.0.0.1:{self._ports['mlflow']}"
        address = f"postgres@127.0.0.1:{self._ports['database']}"
        self.environment = environment(
            DO_NOT_TRACK="1",
            MLFLOW_DISABLE_TELEMETRY="true",
            MLFLOW_TRACKING_URI=self.mlflow,
            PREFECT_API_URL=self.api,
            PREFECT_HOME=str(place / "prefect"),
            PREFECT_SERVER_ANALYTICS_ENABLED="false",
            PREFECT_SERVER_DATABASE_CONNECTION_URL=f"postgresql+asyncpg://{address}/prefect",
            PREFECT_WORKER_QUERY_SECONDS="1",
            PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        )
        host, server = ("--host", "127.0.0.1", "--port"), (*PYTHON, "mlflow", "server", "--workers", "1")
        store = ("--backend-store-uri", f"postgresql://{address}/mlflow")
        artifacts = ("--artifacts-destination", str(place / "artifacts"))
        listen = ("-p", str(self._ports["database"]), "-k", str(self._data), "-h", "127.0.0.1")
        postgres = (*self._as_user, program, "-D", str(self._data / "data"))
        self._commands: dict[str, Sequence[str]] = {
            "database": (*postgres, *listen),
            "prefect": (*PYTHON, "prefect", "server", "start", *host, str(self._ports["prefect"])),
            "mlflow": (*server, *store, *artifacts, *host, str(self._ports["mlflow"])),
            "worker": (*PYTHON, "prefect", "worker", "start", "--pool", "guidespace", "--name", "tester"),
        }

    def create(self) -> None:
        """Makes the databases, starts the servers, deploys, and starts the worker."""
        self._postgres("initdb", "-D", str(self._data / "data"), "-A", "trust", "--no-sync")
        self.start("database")
        for name in ("prefect", "mlflow"):
            self._postgres("createdb", "-h", "127.0.0.1", "-p", str(self._ports["database"]), name)
        for name in ("prefect", "mlflow"):
            self.start(name)
        self.deploy()
        self.start("worker")

    def deploy(self) -> None:
        """Creates the deployments and automations, as the service ``deployments`` does."""
        command = [*PYTHON, "deployments.site", str(self._place / "nights")]
        subprocess.run(command, cwd=ROOT, env=self.environment, check=True, timeout=SECONDS)

    def _postgres(self, program: str, *arguments: str) -> None:
        command = [*self._as_user, find_program(program), *arguments]
        subprocess.run(command, cwd=self._data, check=True, capture_output=True, timeout=SECONDS)

    def start(self, name: str) -> None:
        """Starts a server, and returns when it answers."""
        folder = self._data if name == "database" else ROOT
        log = self._place / f"{name}.log"
        self._running[name], _ = start_process(name, self._commands[name], log, self.environment, folder)
        if name == "prefect":
            until(lambda: is_healthy(f"{self.api}/health"), log)
        elif name == "mlflow":
            until(lambda: is_healthy(f"{self.mlflow}/health"), log)
        elif name == "database":
            until(lambda: answers_to_postgres(self._ports["database"]), log)

    def kill(self, *names: str) -> None:
        """SIGKILL to each and what it started; to the worker alone; ``flow`` is the run's process.

        Fails if one of them was not running, or ended in another way.
        """
        parts = [self.processes(name) for name in names]
        assert all(parts), names
        doomed = [process for part in parts for process in part]
        for process in doomed:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        gone, alive = psutil.wait_procs(doomed, timeout=10)
        assert not alive, alive
        # the exit code of a child's child is its parent's to read
        signals = {process.returncode for process in gone if process.returncode is not None}
        assert signals == ({-signal.SIGKILL} if names != ("flow",) else set()), signals

    def processes(self, name: str) -> list[psutil.Process]:
        """Returns the running processes of a part."""
        first = psutil.Process(self._running["worker" if name == "flow" else name].pid)
        below = first.children(recursive=True)
        return below if name == "flow" else [first] if name == "worker" else [first, *below]

    def end(self) -> None:
        terminate(list(self._running.values()))
        shutil.rmtree(self._data, ignore_errors=True)

    def ask(self, path: str, content: object = None) -> Any:
        """Sends a request to Prefect, repeated while its server or database starts; returns the answer."""
        deadline = time.monotonic() + 60
        while True:
            with suppress(httpx.TransportError):
                answer = httpx.request(
                    "GET" if content is None else "POST", self.api + path, json=content, timeout=30
                )
                if answer.is_success:
                    return answer.json() if answer.content else None
            assert time.monotonic() < deadline, f"{path}: no answer"
            time.sleep(1)

    def trigger(self, home: Path) -> str:
        """Starts a run of the deployment ``nightly-smoke``, and returns its id."""
        parameters = {"feeds": [str(SAMPLE)], "home": str(home), "changes": list(QUICK_NIGHT)}
        content = {"parameters": parameters, "state": {"type": "SCHEDULED"}}
        about = self.ask("/deployments/name/nightly/nightly-smoke")
        return self.ask(f"/deployments/{about['id']}/create_flow_run", content)["id"]

    def retry(self, run: str) -> None:
        """Retries a run, as the button *Retry* does."""
        state = {"type": "SCHEDULED", "name": "AwaitingRetry"}
        self.ask(f"/flow_runs/{run}/set_state", {"state": state, "force": True})

    def wait(self, run: str) -> str:
        """Waits until a run has ended, and returns its state."""
        until(lambda: self.state(run) in ENDED, self.log)
        return self.ask(f"/flow_runs/{run}")["state_name"]

    def running(self) -> list[str]:
        """Returns the names of the flow runs that Prefect shows as Running."""
        query = {"flow_runs": {"state": {"type": {"any_": ["RUNNING", "PENDING"]}}}}
        return [run["name"] for run in self.ask("/flow_runs/filter", query)]

    def state(self, run: str) -> str:
        """Returns the type of the state of a run, such as RUNNING; a worker renames PENDING."""
        return self.ask(f"/flow_runs/{run}")["state_type"]

    def printed(self) -> str:
        """Returns the output of the worker and its flow runs."""
        return self.log.read_text(errors="replace", encoding="utf-8")


def until(check: Callable[[], bool], log: Path) -> None:
    """Waits until ``check`` is true; fails with the end of a log."""
    wait_for(
        check,
        SECONDS,
        lambda: log.read_text(errors="replace", encoding="utf-8") if log.exists() else str(log),
    )


def answers_to_postgres(port: int) -> bool:
    import psycopg2

    try:
        psycopg2.connect(host="127.0.0.1", port=port, user="postgres", dbname="postgres").close()
        return True
    except psycopg2.OperationalError:
        return False


@contextmanager
def standing(place: Path) -> Iterator[Servers]:
    servers = Servers(place)
    try:
        servers.create()
        yield servers
    finally:
        servers.end()
