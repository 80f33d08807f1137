"""Chooses hosts, ports and URLs of the servers, and checks the passwords that a public host requires."""

import importlib.util
import socket
from collections.abc import Mapping

import psutil

from storage.addresses import is_loopback
from storage.errors import ExpectedError

PREFECT_PORT, MLFLOW_PORT = 4200, 5000  # the servers' default ports
PREFECT_AUTH = "PREFECT_SERVER_API_AUTH_STRING"
MLFLOW_AUTH = ("MLFLOW_AUTH_ADMIN_USERNAME", "MLFLOW_AUTH_ADMIN_PASSWORD")
# Environment variables that name other servers, which processes of ``up`` must not use.
SERVER_VARIABLES = ("PREFECT_API_URL", "PREFECT_PROFILE", "MLFLOW_TRACKING_URI", "MLFLOW_REGISTRY_URI")


class NetworkError(ExpectedError):
    """Error: a server cannot listen on the requested host or port. The message says why and what to do."""


def check_host(host: str, environment: Mapping[str, str]) -> None:
    """Checks that Prefect and MLflow have passwords if other machines can reach the host.

    Raises:
        NetworkError: A password is not set, or the package for MLflow's passwords is not installed.
    """
    user, separator, password = environment.get(PREFECT_AUTH, "").partition(":")
    missing_variables = [] if user and separator and password else [f"{PREFECT_AUTH}=USER:PASSWORD"]
    missing_variables += [f"{name}=…" for name in MLFLOW_AUTH if not environment.get(name)]
    if not is_loopback(host) and missing_variables:
        raise NetworkError(
            f"--host {host} is reachable from other machines without a password; set "
            f"{' '.join(missing_variables)} in the environment, or omit --host"
        )
    if has_mlflow_password(environment) and importlib.util.find_spec("flask_wtf") is None:
        raise NetworkError(
            "MLflow's passwords need Flask-WTF, which is not installed: pip install 'guidespace[auth]'"
        )


def has_mlflow_password(environment: Mapping[str, str]) -> bool:
    """Returns whether the environment contains a user and a password for MLflow's basic authentication."""
    return all(environment.get(name) for name in MLFLOW_AUTH)


def choose_port(option: str, requested_port: int, previous_port: int, default_port: int, host: str) -> int:
    """Returns the requested port. If it is 0, returns the previous port, the default port or any free port.

    Args:
        option: Command-line option of the port, for messages.
        requested_port: Port that the user has set; 0: none.
        previous_port: Port of the previous ``up``; 0: none.
        default_port: Default port of the server.
        host: Address on which the server listens.

    Raises:
        NetworkError: The requested port is in use, or the host is not an address of this machine.
    """
    problem: OSError | None = None
    for port in (requested_port,) if requested_port else (previous_port, default_port, 0):
        try:
            return _bind_port(host, port)
        except OSError as error:
            if requested_port and (holder := describe_listener(requested_port)):
                message = (
                    f"{option} {requested_port} is in use by {holder}; choose another port, or omit {option}"
                )
                raise NetworkError(message) from error
            problem = error
    raise NetworkError(f"cannot listen on {host}{f':{requested_port}' if requested_port else ''} ({problem})")


def _bind_port(host: str, port: int) -> int:
    """Returns the port if it is free, or any free port if it is 0; else raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # The servers do this, too: it allows the port of a server that has just exited.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        return probe.getsockname()[1]


def describe_listener(port: int) -> str | None:
    """Returns a text about the process that listens on a TCP port, or None if no process is visible."""
    try:
        pids = [
            connection.pid
            for connection in psutil.net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port
        ]
    except psutil.AccessDenied:  # macOS permits this to root only
        pids = [None] if _accepts_connections(port) else []
    if not pids:
        return None
    pid = next(filter(None, pids), None)
    try:
        return f"process {pid} ({psutil.Process(pid).name()})" if pid else "a process of another user"
    except psutil.NoSuchProcess:
        return None


def _accepts_connections(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def server_url(host: str, port: int, *, for_users: bool = False) -> str:
    """Returns the URL of a server for processes on this machine or, if ``for_users``, for browsers."""
    if host in ("0.0.0.0", "::"):
        host = socket.getfqdn() if for_users else "127.0.0.1" if host == "0.0.0.0" else "::1"
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def page_hosts(host: str, port: int) -> list[str]:
    """Returns the addresses ``HOST:PORT`` that browsers may use for a server, the printed address first."""
    page = server_url(host, port, for_users=True).removeprefix("http://")
    return list(dict.fromkeys([page, f"localhost:{port}", f"127.0.0.1:{port}"]))
