"""Starts a Prefect server for one command, in parallel to the imports of the command.

The server reads a pipe of the command and ends when the pipe is closed. The kernel closes the pipe whenever
the command ends, even by SIGKILL.

Prefect's client could start a server itself (``SubprocessASGIServer``), but it imports the code of the server
for that (3 s of processor time), and its server has two problems. Ctrl-C ends the server together with the
command, so that the command waits 75 s for an answer. SIGKILL of the command leaves the server running.
"""

import atexit
import datetime
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from storage.database_templates import copy_template, save_template
from storage.home.workspace import Workspace
from storage.memory import configure_memory

START_SECONDS = 120  # timeout; a first start without a template database took 93 s on a busy machine
PROFILES = "profiles.toml"
started_at: datetime.datetime | None = None  # when this process started a server
USER_VARIABLES = ("PREFECT_API_URL", "PREFECT_HOME", "PREFECT_PROFILE")


def start_prefect(home: str | Path, *, writes: bool = True) -> Callable[[], None] | None:
    """Starts a Prefect server, unless Prefect's settings contain the address of a server.

    Args:
        home: Folder of the home.
        writes: Whether the command writes to the home.

    Returns:
        A function that waits until the started server answers, or None if no server was started.

    Raises:
        HomeLocked: Another process writes to the home. Checked before the server starts, only if ``writes``.
    """
    workspace = Workspace(home)
    if writes:
        with workspace.writing("start of a command"):
            pass
    if (
        not any(name in os.environ for name in USER_VARIABLES)
        and not (Path.home() / ".prefect" / PROFILES).exists()
    ):
        os.environ["PREFECT_HOME"] = str(workspace.home / "prefect")
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "WARNING")
    os.environ.setdefault("PREFECT_SERVER_LOGGING_LEVEL", "ERROR")
    if _has_server():
        return None
    global started_at
    started_at = datetime.datetime.now(datetime.UTC)
    # The socket listens before the server runs, so that early connections wait in its queue.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server_flags = {
            "PREFECT_UI_ENABLED": "0",
            "PREFECT__SERVER_EPHEMERAL": "1",
            "PREFECT__SERVER_FINAL": "1",
        }
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(listener.fileno())],
            env={**os.environ, **server_flags},
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )
        port = listener.getsockname()[1]
    os.environ["PREFECT_API_URL"] = f"http://127.0.0.1:{port}/api"  # also for the processes of a task runner
    os.environ.setdefault("PREFECT_UI_URL", "")  # this server has no web pages
    if "prefect" in sys.modules:
        from prefect.context import refresh_global_settings_context

        refresh_global_settings_context()
    return partial(_wait_for, process, port)


def exit_process(code: int) -> None:
    """Ends the process with an exit code, without cleaning up PyTorch, MLflow and Prefect (saves 2 s).

    Runs the functions registered with atexit. Ends Prefect's worker threads first, because the Prefect server
    would wait five seconds for their open connections before it ends.
    """
    if "prefect.events.worker" in sys.modules:
        from prefect.events.worker import EventsWorker
        from prefect.logging.handlers import APILogWorker

        EventsWorker.drain_all(timeout=5)
        APILogWorker.drain_all(timeout=5)
    sys.stdout.flush()
    sys.stderr.flush()
    atexit._run_exitfuncs()
    os._exit(code)


def _has_server() -> bool:
    """Returns whether Prefect's settings contain a server. Imports Prefect (1.5 s) only if necessary."""
    if os.environ.get("PREFECT_API_URL"):
        return True
    folder = Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser()
    texts_by_file = {  # a file configures Prefect only if it contains the text
        folder / PROFILES: "",
        Path("prefect.toml"): "",
        Path(".env"): "PREFECT_",
        Path("pyproject.toml"): "[tool.prefect",
    }
    if not any(
        file.is_file() and text in file.read_text(encoding="utf-8") for file, text in texts_by_file.items()
    ):
        return False
    from prefect.settings import PREFECT_API_URL

    return bool(PREFECT_API_URL.value())


def _wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    """Waits until the Prefect server in a process answers on a port.

    Raises:
        RuntimeError: The server ended, or did not answer within START_SECONDS.
    """
    try:
        with closing(HTTPConnection("127.0.0.1", port, timeout=START_SECONDS)) as connection:
            connection.request("GET", "/api/health")
            connection.getresponse()
    except (OSError, HTTPException) as error:
        timed_out = isinstance(error, TimeoutError)
        state = f"did not answer within {START_SECONDS} s" if timed_out else f"ended with {process.wait(10)}"
        raise RuntimeError(
            f"The Prefect server {state}; the lines above may say why. "
            "Set PREFECT_API_URL to use another server."
        ) from error


def migrate_prefect() -> None:
    """Creates Prefect's SQLite database in a new PREFECT_HOME by copying an empty one of the same version.

    The copy replaces Prefect's migrations, which take half of the first start of its server (6 of 11 CPU
    seconds).
    """
    from prefect.server.database import provide_database_interface
    from prefect.settings import get_current_settings

    url_secret = get_current_settings().server.database.connection_url
    url = url_secret.get_secret_value() if url_secret else ""
    _, is_file, path = url.partition("sqlite+aiosqlite:///")
    database = Path(path)
    if not is_file or database.exists():
        return
    database.parent.mkdir(parents=True, exist_ok=True)
    if not copy_template("prefect", database):  # an incomplete database could never be opened again
        import asyncio

        asyncio.run(provide_database_interface().create_db())
        save_template("prefect", database)


def _serve(listener_fd: int) -> None:
    """Runs Prefect's server on a listening socket, given by its descriptor, until the parent process ends."""
    import uvicorn
    from prefect.server.api.server import create_app

    from flows.same_site import SameSite

    def exit_with_parent() -> None:
        os.read(0, 1)  # not sys.stdin, whose lock would abort the interpreter at its end
        os._exit(0)

    threading.Thread(target=exit_with_parent, name="parent", daemon=True).start()
    configure_memory()
    migrate_prefect()
    config = uvicorn.Config(SameSite(create_app()), log_level="error", lifespan="on")
    # With ``fd``, uvicorn assumes a Unix socket and omits TCP_NODELAY: each answer would take 40 ms.
    uvicorn.Server(config).run([socket.socket(fileno=listener_fd)])


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
