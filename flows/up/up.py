"""Starts all that a machine needs to run a home every night, shows what runs, and ends it."""

import os
import secrets
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import urlsplit

import httpx

from flows.cli.exits import DONE, FAILED, Signals
from flows.up.network import (
    MLFLOW_AUTH,
    MLFLOW_PORT,
    PREFECT_AUTH,
    PREFECT_PORT,
    address,
    asks_for_password,
    check_host,
    choose_port,
    local_names,
    own_environment,
)
from flows.up.processes import UP_HOME, Process, end
from flows.up.record import AlreadyUp, Record, read_record, standing, write_record
from flows.up.standing import Ended, Standing
from flows.up.watch import FlowRuns, client
from storage.home.workspace import Workspace
from storage.tracking.connection import PAGES

POOL = "guidespace"
ASK_SECONDS = 5.0  # between two questions after flow runs
STORE, ARTIFACTS = "MLFLOW_BACKEND_STORE_URI", "MLFLOW_ARTIFACTS_DESTINATION"  # as MLflow's server reads them
QUIET = {  # unless the user has set them
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # judges of texts: processes that nobody needs here
    "GIT_PYTHON_REFRESH": "quiet",
}


def stand_up(home: str, host: str, prefect_port: int, mlflow_port: int, feeds: Sequence[str]) -> int:
    """Runs until Ctrl-C, SIGTERM or the end of a process; returns the exit code.

    Args:
        home: Made where there is none.
        host: Interface on which both servers listen.
        prefect_port: 0 for the one of last time, 4200, or a free one; ``mlflow_port`` likewise, 5000.
        feeds: Of the deployments that read guides; none leaves theirs.

    Raises:
        NetworkError: A given port is taken, or the host asks for passwords that are not set.
        HomeError: The home cannot be used.
    """
    folder, environment = Workspace(home).home, QUIET | own_environment()
    check_host(host, environment)
    try:
        with standing(folder) as before, Signals() as stop:
            if left := end(before.processes if before else []):
                print(f"An earlier `guidespace up` was killed and left {', '.join(left)} running: ended now.")
            last = [urlsplit(url).port or 0 for url in (before.prefect, before.mlflow)] if before else [0, 0]
            prefect = choose_port("--prefect-port", prefect_port, last[0], PREFECT_PORT, host)
            mlflow = choose_port("--mlflow-port", mlflow_port, last[1], MLFLOW_PORT, host)
            pages = [address(host, port, shown=True) for port in (prefect, mlflow)]
            own = {STORE: f"sqlite:///{folder / 'mlflow.db'}", ARTIFACTS: str(folder / "mlflow")}
            given = {name: environment[name] for name in own if environment.get(name)}
            environment |= own | given
            environment |= {
                "PREFECT_HOME": str(folder / "prefect"),
                "PREFECT_API_URL": f"{address(host, prefect)}/api",
                "PREFECT_UI_URL": pages[0],
                "PREFECT_SERVER_UI_API_URL": f"{pages[0]}/api",
                # Prefect accepts requests of any page by default, and a request can start a process
                "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": ",".join(
                    f"http://{name}" for port in (prefect, mlflow) for name in local_names(host, port)
                ),
                "PREFECT_SERVER_API_CSRF_PROTECTION_ENABLED": "true",
                "PREFECT_API_AUTH_STRING": environment.get(PREFECT_AUTH, ""),
                # of the homes below it, too
                "MLFLOW_TRACKING_URI": address(host, mlflow) if given else own[STORE],
                "MLFLOW_TRACKING_USERNAME": environment.get(MLFLOW_AUTH[0], ""),
                "MLFLOW_TRACKING_PASSWORD": environment.get(MLFLOW_AUTH[1], ""),
                "MLFLOW_FLASK_SERVER_SECRET_KEY": secrets.token_hex(32),
                PAGES: pages[1],
                UP_HOME: str(folder),
            }
            record = Record(prefect=pages[0], mlflow=pages[1], own=Process.of("guidespace up", os.getpid()))
            write_record(folder, record)
            whole = Standing(folder, record, environment, stop)
            try:
                _start(whole, host, prefect, mlflow, feeds)
                _watch(whole, FlowRuns(client(address(host, prefect), environment.get(PREFECT_AUTH, ""))))
            except Ended as error:
                print(f"guidespace: {error}", flush=True)
                return FAILED
            finally:
                print("ending …", flush=True)
                whole.end()
            print("All is ended; what was under way goes on by Retry, or with the next run.")
            return DONE
    except AlreadyUp:
        found = read_record(folder)
        began = f", since {found.since}, process {found.own.pid}" if found else ", and is just starting"
        print(
            "\n".join(
                [f"`guidespace up` stands for {folder} already{began}", *(found.lines if found else [])]
            )
        )
        return DONE


def _start(whole: Standing, host: str, prefect: int, mlflow: int, feeds: Sequence[str]) -> None:
    """Starts the servers, applies the deployments and starts the worker; returns at once after a signal."""
    home, begun = whole.home, time.monotonic()
    print(f"GuideSpace: standing up {home} …", flush=True)
    listen = ("--host", host, "--port")
    # with a password, any name of the machine: a page of another site does not know the password
    hosts = "*" if whole.environment.get(PREFECT_AUTH) else host
    server = ("flows.up.prefect_server", "--allowed-hosts", hosts)
    whole.start("Prefect", *server, *listen, str(prefect))
    site = ("deployments", "deployments.site", str(home), *feeds)
    is_own = whole.environment["MLFLOW_TRACKING_URI"] == whole.environment[STORE]
    if is_own:  # its first client makes the database whole or not at all, MLflow's server does not
        whole.start(*site, passing=True)
        whole.wait((home / "mlflow.db").exists)
    login = ("--app-name", "basic-auth") if asks_for_password(whole.environment) else ()
    hosts = "*" if login else ",".join(local_names(host, mlflow))
    serve = ("mlflow", "server", "--workers", "1", "--allowed-hosts", hosts, *login)
    whole.start("MLflow", *serve, *listen, str(mlflow), folder=home)
    whole.wait(lambda: _answers(f"{address(host, mlflow)}/health"))
    if not is_own:
        whole.start(*site, passing=True)
    whole.wait(lambda: whole.has_ended("deployments"))
    name = ("--pool", POOL, "--name", socket.gethostname())
    if not whole.is_stopped:
        whole.start("worker", "prefect", "worker", "start", *name)
        lines = "\n".join([*whole.record.lines, f"  logs     {home / 'logs'}"])
        print(f"{lines}\nStood up in {time.monotonic() - begun:.0f} s. Ctrl-C ends all of it.", flush=True)


def _watch(whole: Standing, runs: FlowRuns) -> None:
    """Prints what runs until a signal comes; raises Ended."""
    asked = 0.0
    while not whole.is_stopped:
        whole.look()
        if time.monotonic() - asked >= ASK_SECONDS:
            asked = time.monotonic()
            for line in runs.changes():
                print(line, flush=True)


def _answers(url: str) -> bool:
    with suppress(httpx.HTTPError):
        return httpx.get(url, timeout=2.0, trust_env=False).is_success
    return False
