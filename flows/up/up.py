"""Runs the servers, the worker and the deployments that the nightly runs of a home need, on one machine."""

import os
import secrets
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from flows.cli.exits import DONE, FAILED, Signals
from flows.up.network import (
    MLFLOW_AUTH,
    MLFLOW_PORT,
    PREFECT_AUTH,
    PREFECT_PORT,
    check_host,
    child_environment,
    choose_port,
    has_mlflow_password,
    page_hosts,
    server_url,
)
from flows.up.prefect_client import FlowRuns, make_client
from flows.up.processes import (
    UP_HOME,
    AlreadyUp,
    Process,
    RunningProcesses,
    locked_record,
    read_record,
    terminate,
    write_record,
)
from flows.up.supervisor import ProcessEnded, Supervisor
from storage.home.workspace import Workspace
from storage.tracking.connection import PAGES_VARIABLE

POOL = "guidespace"
FLOW_RUN_POLL_SECONDS = 5.0
STORE, ARTIFACTS = "MLFLOW_BACKEND_STORE_URI", "MLFLOW_ARTIFACTS_DESTINATION"  # variables of MLflow's server
DEFAULTS = {  # environment variables that are set unless the user has set them
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # processes for LLM judges, which are not used here
    "GIT_PYTHON_REFRESH": "quiet",
}


def run_servers(home: str, host: str, prefect_port: int, mlflow_port: int, feeds: Sequence[str]) -> int:
    """Runs the servers and the worker until Ctrl-C, SIGTERM or the end of a process; returns the exit code.

    Args:
        home: The home folder; created if missing.
        host: Interface on which both servers listen.
        prefect_port: Port of Prefect; 0: the previous port, else 4200, else any free port.
        mlflow_port: Port of MLflow; 0: the previous port, else 5000, else any free port.
        feeds: Feeds of the deployments that read guides; if empty, existing deployments keep their feeds.

    Raises:
        NetworkError: A requested port is in use, or the host requires passwords that are not set.
        HomeError: The home cannot be used.
    """
    folder, environment = Workspace(home).home, DEFAULTS | child_environment()
    check_host(host, environment)
    try:
        with locked_record(folder) as previous, Signals() as stop:
            if leftover_names := terminate(previous.processes if previous else []):
                print(
                    f"Ended {', '.join(leftover_names)}, which an earlier `guidespace up` had left running."
                )
            urls = (previous.prefect, previous.mlflow) if previous else ("", "")
            previous_ports = [urlsplit(url).port or 0 for url in urls]
            ports = (
                choose_port("--prefect-port", prefect_port, previous_ports[0], PREFECT_PORT, host),
                choose_port("--mlflow-port", mlflow_port, previous_ports[1], MLFLOW_PORT, host),
            )
            environment |= _server_settings(folder, host, *ports, environment)
            pages = [server_url(host, port, for_users=True) for port in ports]
            record = RunningProcesses(*pages, supervisor=Process.from_pid("guidespace up", os.getpid()))
            write_record(folder, record)
            supervisor = Supervisor(folder, record, environment, stop)
            try:
                _start(supervisor, host, *ports, feeds)
                client = make_client(server_url(host, ports[0]), environment.get(PREFECT_AUTH, ""))
                _watch(supervisor, FlowRuns(client))
            except ProcessEnded as error:
                print(f"guidespace: {error}", flush=True)
                return FAILED
            finally:
                print("stopping …", flush=True)
                supervisor.stop_all()
            print("All processes have stopped; Retry or the next run continues interrupted flow runs.")
            return DONE
    except AlreadyUp:
        print(_describe_running(folder))
        return DONE


def _server_settings(
    folder: Path, host: str, prefect: int, mlflow: int, environment: Mapping[str, str]
) -> dict[str, str]:
    """Returns environment variables of the servers and clients; ``prefect`` and ``mlflow`` are ports."""
    defaults = {STORE: f"sqlite:///{folder / 'mlflow.db'}", ARTIFACTS: str(folder / "mlflow")}
    user_settings = {name: environment[name] for name in defaults if environment.get(name)}
    page = server_url(host, prefect, for_users=True)
    origins = [f"http://{name}" for port in (prefect, mlflow) for name in page_hosts(host, port)]
    return {
        **defaults,
        **user_settings,
        "PREFECT_HOME": str(folder / "prefect"),
        "PREFECT_API_URL": f"{server_url(host, prefect)}/api",
        "PREFECT_UI_URL": page,
        "PREFECT_SERVER_UI_API_URL": f"{page}/api",
        # by default, Prefect accepts requests of web pages of any site, and a request can start a process
        "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": ",".join(origins),
        "PREFECT_SERVER_API_CSRF_PROTECTION_ENABLED": "true",
        "PREFECT_API_AUTH_STRING": environment.get(PREFECT_AUTH, ""),
        # homes within this home use the same database
        "MLFLOW_TRACKING_URI": server_url(host, mlflow) if user_settings else defaults[STORE],
        "MLFLOW_TRACKING_USERNAME": environment.get(MLFLOW_AUTH[0], ""),
        "MLFLOW_TRACKING_PASSWORD": environment.get(MLFLOW_AUTH[1], ""),
        "MLFLOW_FLASK_SERVER_SECRET_KEY": secrets.token_hex(32),
        PAGES_VARIABLE: server_url(host, mlflow, for_users=True),
        UP_HOME: str(folder),
    }


def _describe_running(folder: Path) -> str:
    """Returns a message about another ``up`` that is running for the home."""
    message = f"`guidespace up` is already running for {folder}"
    if (record := read_record(folder)) is None:
        return f"{message}; it has just been started"
    return f"{message}, since {record.since}, process {record.supervisor.pid}\n{record.summary()}"


def _start(supervisor: Supervisor, host: str, prefect: int, mlflow: int, feeds: Sequence[str]) -> None:
    """Starts the servers, applies the deployments and starts the worker; returns early after a signal."""
    home, environment, started_at = supervisor.home, supervisor.environment, time.monotonic()
    print(f"GuideSpace: starting the servers of {home} …", flush=True)
    listen_options = ("--host", host, "--port")
    # with a password, host names need not be checked, because pages of other sites do not know the password
    hosts = "*" if environment.get(PREFECT_AUTH) else host
    supervisor.start(
        "Prefect", "flows.up.prefect_server", "--allowed-hosts", hosts, *listen_options, str(prefect)
    )
    site_command = ("deployments", "deployments.site", str(home), *feeds)
    uses_home_database = environment["MLFLOW_TRACKING_URI"] == environment[STORE]
    if uses_home_database:  # our client creates the database atomically, unlike MLflow's server
        supervisor.start(*site_command, one_shot=True)
        supervisor.wait((home / "mlflow.db").exists)
    login_arguments = ("--app-name", "basic-auth") if has_mlflow_password(environment) else ()
    hosts = "*" if login_arguments else ",".join(page_hosts(host, mlflow))
    server_command = ("mlflow", "server", "--workers", "1", "--allowed-hosts", hosts, *login_arguments)
    supervisor.start("MLflow", *server_command, *listen_options, str(mlflow), folder=home)
    supervisor.wait(lambda: _is_healthy(f"{server_url(host, mlflow)}/health"))
    if not uses_home_database:
        supervisor.start(*site_command, one_shot=True)
    supervisor.wait(lambda: supervisor.remove_finished("deployments"))
    if not supervisor.is_stopped:
        worker_command = ("prefect", "worker", "start", "--pool", POOL, "--name", socket.gethostname())
        supervisor.start("worker", *worker_command)
        seconds = time.monotonic() - started_at
        print(f"{supervisor.record.summary()}\n  logs     {home / 'logs'}")
        print(f"Started in {seconds:.0f} s. Press Ctrl-C to stop everything.", flush=True)


def _watch(supervisor: Supervisor, runs: FlowRuns) -> None:
    """Prints changes of flow runs until a signal is received; raises ProcessEnded."""
    last_poll = 0.0
    while not supervisor.is_stopped:
        supervisor.poll()
        if time.monotonic() - last_poll >= FLOW_RUN_POLL_SECONDS:
            last_poll = time.monotonic()
            for line in runs.changes():
                print(line, flush=True)


def _is_healthy(url: str) -> bool:
    with suppress(httpx.HTTPError):
        return httpx.get(url, timeout=2.0, trust_env=False).is_success
    return False
