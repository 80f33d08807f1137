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

from flows.defaults import WORK_POOL
from flows.up.network import (
    MLFLOW_AUTH,
    MLFLOW_PORT,
    PREFECT_AUTH,
    PREFECT_PORT,
    SERVER_VARIABLES,
    check_host,
    choose_port,
    has_mlflow_password,
    page_hosts,
    server_url,
)
from flows.up.prefect_client import FlowRunWatcher, make_client
from flows.up.processes import (
    UP_HOME,
    AlreadyUp,
    ProcessIdentity,
    RunningProcesses,
    locked_record,
    read_record,
    terminate,
    write_record,
)
from flows.up.supervisor import ProcessEnded, StopSignals, Supervisor
from storage.home.workspace import Workspace
from storage.tracking.connection import PAGES_VARIABLE

FLOW_RUN_POLL_SECONDS = 5.0  # pause between two checks of the states of flow runs
# environment variables of MLflow's server
STORE_VARIABLE, ARTIFACTS_VARIABLE = "MLFLOW_BACKEND_STORE_URI", "MLFLOW_ARTIFACTS_DESTINATION"
DEFAULT_ENVIRONMENT = {  # variables that are set unless the user has set them
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # processes for LLM judges, which are not used here
    "GIT_PYTHON_REFRESH": "quiet",
}


def run_servers(home: str, host: str, prefect_port: int, mlflow_port: int, feeds: Sequence[str]) -> bool:
    """Runs servers and worker until Ctrl-C, SIGTERM or SIGHUP. Returns False if one of them has failed.

    Returns True without starting anything if another ``up`` is running for the home.

    Args:
        home: Folder of the home; created if missing.
        host: Address on which Prefect and MLflow listen.
        prefect_port: Port of Prefect; 0: the previous port, else 4200, else any free port.
        mlflow_port: Port of MLflow; 0: the previous port, else 5000, else any free port.
        feeds: Feeds of the deployments; if empty, existing deployments keep their feeds.

    Raises:
        NetworkError: A requested port is in use, or the host requires passwords that are not set.
        HomeError: The home cannot be used.
    """
    user_environment = {name: value for name, value in os.environ.items() if name not in SERVER_VARIABLES}
    folder, environment = Workspace(home).home, DEFAULT_ENVIRONMENT | user_environment
    check_host(host, environment)
    try:
        with locked_record(folder) as previous_record:
            signals = StopSignals()
            if leftover_names := terminate(previous_record.processes if previous_record else []):
                print(
                    f"Ended {', '.join(leftover_names)}, which an earlier `guidespace up` had left running."
                )
            urls = (previous_record.prefect, previous_record.mlflow) if previous_record else ("", "")
            previous_ports = [urlsplit(url).port or 0 for url in urls]
            prefect_port = choose_port("--prefect-port", prefect_port, previous_ports[0], PREFECT_PORT, host)
            mlflow_port = choose_port("--mlflow-port", mlflow_port, previous_ports[1], MLFLOW_PORT, host)
            environment |= _server_environment(folder, host, prefect_port, mlflow_port, environment)
            record = RunningProcesses(
                prefect=server_url(host, prefect_port, for_users=True),
                mlflow=server_url(host, mlflow_port, for_users=True),
                supervisor=ProcessIdentity.from_pid("guidespace up", os.getpid()),
            )
            write_record(folder, record)
            supervisor = Supervisor(folder, record, environment, signals)
            try:
                _start_servers(supervisor, host, prefect_port, mlflow_port, feeds)
                client = make_client(server_url(host, prefect_port), environment.get(PREFECT_AUTH, ""))
                _report_flow_runs(supervisor, FlowRunWatcher(client))
            except ProcessEnded as error:
                print(f"guidespace: {error}", flush=True)
                return False
            finally:
                print("stopping …", flush=True)
                supervisor.stop_all()
            print("All processes have stopped. Retry, or the next run, continues interrupted flow runs.")
    except AlreadyUp:
        print(_describe_running(folder))
    return True


def _server_environment(
    folder: Path, host: str, prefect_port: int, mlflow_port: int, environment: Mapping[str, str]
) -> dict[str, str]:
    """Returns the environment variables that configure the servers and their clients."""
    store, artifacts = f"sqlite:///{folder / 'mlflow.db'}", str(folder / "mlflow")
    defaults = {STORE_VARIABLE: store, ARTIFACTS_VARIABLE: artifacts}
    user_settings = {variable: environment[variable] for variable in defaults if environment.get(variable)}
    page = server_url(host, prefect_port, for_users=True)
    ports = prefect_port, mlflow_port
    origins = [f"http://{address}" for port in ports for address in page_hosts(host, port)]
    return {
        **defaults,
        **user_settings,
        "PREFECT_HOME": str(folder / "prefect"),
        "PREFECT_API_URL": f"{server_url(host, prefect_port)}/api",
        "PREFECT_UI_URL": page,
        "PREFECT_SERVER_UI_API_URL": f"{page}/api",
        # By default, Prefect accepts requests of pages of any site, and a request can start a process.
        "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": ",".join(origins),
        "PREFECT_SERVER_API_CSRF_PROTECTION_ENABLED": "true",
        "PREFECT_API_AUTH_STRING": environment.get(PREFECT_AUTH, ""),
        # also for homes within this home, so that they use the same database
        "MLFLOW_TRACKING_URI": server_url(host, mlflow_port) if user_settings else defaults[STORE_VARIABLE],
        "MLFLOW_TRACKING_USERNAME": environment.get(MLFLOW_AUTH[0], ""),
        "MLFLOW_TRACKING_PASSWORD": environment.get(MLFLOW_AUTH[1], ""),
        "MLFLOW_FLASK_SERVER_SECRET_KEY": secrets.token_hex(32),
        PAGES_VARIABLE: server_url(host, mlflow_port, for_users=True),
        UP_HOME: str(folder),
    }


def _describe_running(folder: Path) -> str:
    """Returns a message about another ``up`` that is running for the home."""
    message = f"`guidespace up` is already running for {folder}"
    if (record := read_record(folder)) is None:
        return f"{message}; it has just been started"
    return f"{message}, since {record.since}, process {record.supervisor.pid}\n{record.summary()}"


def _start_servers(
    supervisor: Supervisor, host: str, prefect_port: int, mlflow_port: int, feeds: Sequence[str]
) -> None:
    """Starts the servers, creates or updates the deployments, and starts the worker. Stops after a signal."""
    home, environment, start_time = supervisor.home, supervisor.environment, time.monotonic()
    print(f"GuideSpace: starting the servers of {home} …", flush=True)
    listen_options = ("--host", host, "--port")
    # If there is a password, host names need not be checked, because pages of other sites do not know it.
    prefect_hosts = "*" if environment.get(PREFECT_AUTH) else host
    server_command = ("flows.up.prefect_server", "--allowed-hosts", prefect_hosts)
    supervisor.start("Prefect", *server_command, *listen_options, str(prefect_port))
    site_command = ("deployments", "deployments.site", str(home), *feeds)
    uses_home_database = environment["MLFLOW_TRACKING_URI"] == environment[STORE_VARIABLE]
    if uses_home_database:  # our client creates the database atomically, unlike MLflow's server
        supervisor.start(*site_command, one_shot=True)
        supervisor.wait((home / "mlflow.db").exists)
    login_arguments = ("--app-name", "basic-auth") if has_mlflow_password(environment) else ()
    mlflow_hosts = "*" if login_arguments else ",".join(page_hosts(host, mlflow_port))
    server_command = ("mlflow", "server", "--workers", "1", "--allowed-hosts", mlflow_hosts, *login_arguments)
    supervisor.start("MLflow", *server_command, *listen_options, str(mlflow_port), folder=home)
    supervisor.wait(lambda: _is_healthy(f"{server_url(host, mlflow_port)}/health"))
    if not uses_home_database:
        supervisor.start(*site_command, one_shot=True)
    supervisor.wait(lambda: supervisor.remove_finished("deployments"))
    if not supervisor.is_stopped:
        worker_command = ("prefect", "worker", "start", "--pool", WORK_POOL, "--name", socket.gethostname())
        supervisor.start("worker", *worker_command)
        seconds = time.monotonic() - start_time
        print(f"{supervisor.record.summary()}\n  logs     {home / 'logs'}")
        print(f"Started in {seconds:.0f} s. Press Ctrl-C to stop everything.", flush=True)


def _report_flow_runs(supervisor: Supervisor, watcher: FlowRunWatcher) -> None:
    """Prints state changes of flow runs until a signal arrives. Raises ProcessEnded if a process ends."""
    last_poll = 0.0
    while not supervisor.is_stopped:
        supervisor.poll()
        if time.monotonic() - last_poll >= FLOW_RUN_POLL_SECONDS:
            last_poll = time.monotonic()
            for line in watcher.describe_changes():
                print(line, flush=True)


def _is_healthy(url: str) -> bool:
    with suppress(httpx.HTTPError):
        return httpx.get(url, timeout=2.0, trust_env=False).is_success
    return False
