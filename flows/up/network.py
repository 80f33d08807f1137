"""Where servers listen: ports, and what a host that other machines reach asks for."""

import importlib.util
import os
import socket
from collections.abc import Mapping

import psutil

from storage.addresses import is_loopback
from storage.errors import ExpectedError

PREFECT_PORT, MLFLOW_PORT = 4200, 5000  # their own defaults
PREFECT_AUTH = "PREFECT_SERVER_API_AUTH_STRING"
MLFLOW_AUTH = ("MLFLOW_AUTH_ADMIN_USERNAME", "MLFLOW_AUTH_ADMIN_PASSWORD")


class NetworkError(ExpectedError):
    """The servers cannot listen as asked; the message says what was found and what to do."""


def check_host(host: str, environment: Mapping[str, str]) -> None:
    """Raises NetworkError for a host that other machines reach, unless both servers ask for a password."""
    user, separator, password = environment.get(PREFECT_AUTH, "").partition(":")
    missing = [] if user and separator and password else [f"{PREFECT_AUTH}=USER:PASSWORD"]
    missing += [f"{name}=…" for name in MLFLOW_AUTH if not environment.get(name)]
    if not is_loopback(host) and missing:
        raise NetworkError(
            f"--host {host} is reached by other machines, and they would need no password: set "
            f"{' '.join(missing)} in the environment, or leave --host out"
        )
    if asks_for_password(environment) and importlib.util.find_spec("flask_wtf") is None:
        raise NetworkError(
            "MLflow asks for passwords with Flask-WTF, which is not installed: pip install 'guidespace[auth]'"
        )


def asks_for_password(environment: Mapping[str, str]) -> bool:
    """Whether the environment holds what MLflow's basic authentication needs."""
    return all(environment.get(name) for name in MLFLOW_AUTH)


def choose_port(option: str, given: int, before: int, usual: int, host: str) -> int:
    """The given port, else the one of last time, the usual one, or any that is free.

    Raises:
        NetworkError: The given one is taken, or nobody can listen on that host.
    """
    problem: OSError | None = None
    for port in (given,) if given else (before, usual, 0):
        try:
            return _try(host, port)
        except OSError as error:
            if given and (who := listener(given)):
                raise NetworkError(
                    f"{option} {given} is taken by {who}; name another, or leave it out"
                ) from error
            problem = error
    raise NetworkError(f"nobody can listen on {host}{f':{given}' if given else ''} ({problem})")


def _try(host: str, port: int) -> int:
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(kind, socket.SOCK_STREAM) as probe:
        probe.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        )  # as servers do: not for one that just ended
        probe.bind((host, port))
        return probe.getsockname()[1]


def listener(port: int) -> str | None:
    """The process that listens on a TCP port, in words; None where none does, as far as this user sees."""
    try:
        found = [
            each.pid
            for each in psutil.net_connections("tcp")
            if each.status == psutil.CONN_LISTEN and each.laddr and each.laddr.port == port
        ]
    except psutil.AccessDenied:  # macOS tells root only
        found = [None] if _answers(port) else []
    if not found:
        return None
    pid = next((pid for pid in found if pid), None)
    try:
        return f"process {pid} ({psutil.Process(pid).name()})" if pid else "a process of another user"
    except psutil.NoSuchProcess:
        return None


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def address(host: str, port: int, *, shown: bool = False) -> str:
    """A URL of a server: for this machine's own clients, or as shown to people."""
    if host in ("0.0.0.0", "::"):
        host = socket.getfqdn() if shown else "127.0.0.1" if host == "0.0.0.0" else "::1"
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def local_names(host: str, port: int) -> list[str]:
    """Names with ports by which a browser on this machine reaches a server: that of its page first."""
    page = address(host, port, shown=True).removeprefix("http://")
    return list(dict.fromkeys([page, f"localhost:{port}", f"127.0.0.1:{port}"]))


def own_environment() -> dict[str, str]:
    """This process' environment without what would lead children to other servers."""
    elsewhere = ("PREFECT_API_URL", "PREFECT_PROFILE", "MLFLOW_TRACKING_URI", "MLFLOW_REGISTRY_URI")
    return {name: value for name, value in os.environ.items() if name not in elsewhere}
