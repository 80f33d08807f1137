"""Prefect's own server for a run without another: started before anything heavy is imported, since booting it
takes as long as our imports.

Prefect's client would start one itself (``SubprocessASGIServer``), for which it imports the server's code:
three seconds of processor time. That server shares the terminal's process group: Ctrl-C ends it together with
the run, whose client then waits 75 s for an answer, and a run ended by SIGKILL leaves it behind. This one
waits at a pipe that nobody writes to, which the kernel closes when the client is gone, however it ended.
"""

import asyncio
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

START_SECONDS = 120  # of a first start without the copy of an empty database, on a busy machine: 93
PROFILES = "profiles.toml"
own_since: datetime.datetime | None = None  # when this process started a server of its own
CHOSEN = ("PREFECT_API_URL", "PREFECT_HOME", "PREFECT_PROFILE")  # a person's Prefect, not the home's


def start_prefect(home: str | Path) -> Callable[[], None] | None:
    """Starts the server and returns what waits until it answers; None where Prefect's settings name one.

    Raises:
        HomeLocked: Somebody writes to the home: known at once, not after Prefect has started.
    """
    workspace = Workspace(home)
    with workspace.writing("nightly run"):
        pass
    own = workspace.home / "prefect"
    if not any(name in os.environ for name in CHOSEN) and not (Path.home() / ".prefect" / PROFILES).exists():
        os.environ["PREFECT_HOME"] = str(own)
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "WARNING")
    os.environ.setdefault("PREFECT_SERVER_LOGGING_LEVEL", "ERROR")
    if _has_server():
        return None
    global own_since
    own_since = datetime.datetime.now(datetime.UTC)
    # The socket listens before the server runs: a client that connects early waits in its queue.
    with socket.create_server(("127.0.0.1", 0)) as listening:
        flags = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1", "PREFECT__SERVER_FINAL": "1"}
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(listening.fileno())],
            env={**os.environ, **flags},
            stdin=subprocess.PIPE,
            pass_fds=[listening.fileno()],
            start_new_session=True,
        )
        port = listening.getsockname()[1]
    os.environ["PREFECT_API_URL"] = f"http://127.0.0.1:{port}/api"  # workers of a task runner find it too
    os.environ.setdefault("PREFECT_UI_URL", "")  # it serves no pages
    if "prefect" in sys.modules:
        from prefect.context import refresh_global_settings_context

        refresh_global_settings_context()
    return partial(_wait_for, process, port)


def leave(code: int) -> None:
    """Ends the process at once: exit functions run, but no teardown (torch, MLflow, Prefect: two seconds).

    Prefect's worker threads are emptied first: the server waits five seconds for one that holds a connection.
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
    """Whether Prefect's settings name a server. Prefect is asked only where it has settings in a file, since
    its import takes 1.5 s.
    """
    if os.environ.get("PREFECT_API_URL"):
        return True
    folder = Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser()
    files = {folder / PROFILES: "", Path("prefect.toml"): "", Path(".env"): "PREFECT_"}
    files[Path("pyproject.toml")] = "[tool.prefect"
    if not any(file.is_file() and word in file.read_text(encoding="utf-8") for file, word in files.items()):
        return False
    from prefect.settings import PREFECT_API_URL

    return bool(PREFECT_API_URL.value())


def _wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    """Waits until the server answers.

    Raises:
        RuntimeError: It ended, or did not answer within START_SECONDS.
    """
    try:
        with closing(HTTPConnection("127.0.0.1", port, timeout=START_SECONDS)) as connection:
            connection.request("GET", "/api/health")
            connection.getresponse()
    except (OSError, HTTPException) as error:
        late = isinstance(error, TimeoutError)
        state = f"did not answer within {START_SECONDS} s" if late else f"ended with {process.wait(10)}"
        raise RuntimeError(
            f"Prefect's own server {state}. The lines above may say why; PREFECT_API_URL names another one."
        ) from error


def migrate() -> None:
    """Gives a new PREFECT_HOME its SQLite database: a copy of an empty one of this version of Prefect.

    Prefect's migrations take half of its server's first start (6 of 11 CPU seconds).
    """
    from prefect.server.database import provide_database_interface
    from prefect.settings import get_current_settings

    chosen = get_current_settings().server.database.connection_url
    url = chosen.get_secret_value() if chosen else ""
    _, is_file, path = url.partition("sqlite+aiosqlite:///")
    database = Path(path)
    if not is_file or database.exists():
        return
    database.parent.mkdir(parents=True, exist_ok=True)
    if not copy_template("prefect", database):  # half a database would never open again
        asyncio.run(provide_database_interface().create_db())
        save_template("prefect", database)


def _serve(listening: int) -> None:
    """Runs the server on a socket that listens, until the client's process is gone or SIGTERM comes."""
    import uvicorn
    from prefect.server.api.server import create_app

    from flows.same_site import SameSite

    def end_with_the_client() -> None:
        os.read(0, 1)  # not sys.stdin, whose lock would abort an interpreter that ends by itself
        os._exit(0)

    threading.Thread(target=end_with_the_client, name="client", daemon=True).start()
    configure_memory()
    migrate()
    config = uvicorn.Config(SameSite(create_app()), log_level="error", lifespan="on")
    # Given ``fd``, uvicorn takes it for a Unix socket: without TCP_NODELAY each answer takes 40 ms.
    uvicorn.Server(config).run([socket.socket(fileno=listening)])


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
