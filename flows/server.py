"""Prefect's own server for a run without another: started before anything heavy is imported, since booting it
takes longer than our imports, and in a session of its own.

``SubprocessASGIServer`` starts it in the terminal's process group. There Ctrl-C ends it together with the
run, whose client then waits 75 s for an answer, and a run ended by SIGKILL leaves it behind. Here it reads a
pipe that nobody writes to, which the kernel closes when the client's process is gone, however it ended.
"""

import asyncio
import atexit
import importlib.metadata
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, suppress
from pathlib import Path

from storage.json_file import copy_unless_there
from storage.workspace import Workspace


def start_prefect(home: str | Path) -> threading.Thread:
    """Starts the server in a thread, unless PREFECT_API_URL names one; a client's first call would do so too.

    Raises:
        HomeLocked: Somebody writes to the home: known at once, not after Prefect has started.
    """
    workspace = Workspace(home)
    with workspace.writing("nightly run"):
        pass
    _point_prefect_at(workspace.home)
    thread = threading.Thread(target=_start, name="prefect-start", daemon=True)
    thread.start()
    return thread


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


def _point_prefect_at(home: Path) -> None:
    chosen = any(name in os.environ for name in ("PREFECT_API_URL", "PREFECT_HOME", "PREFECT_PROFILE"))
    if not chosen and not (Path.home() / ".prefect" / "profiles.toml").exists():
        os.environ["PREFECT_HOME"] = str(home / "prefect")
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "WARNING")
    os.environ.setdefault("PREFECT_SERVER_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "120")


def _start() -> None:
    from prefect.server.api.server import SubprocessASGIServer
    from prefect.settings import PREFECT_API_URL, get_current_settings

    class OwnServer(SubprocessASGIServer):
        """What Prefect's client finds as the temporary server of this process."""

        def _run_uvicorn_command(self) -> subprocess.Popen[bytes]:
            flags = {"UI_ENABLED": "0", "_SERVER_EPHEMERAL": "1", "_SERVER_FINAL": "1"}
            chosen = get_current_settings().to_environment_variables(exclude_unset=True)
            return subprocess.Popen(
                [sys.executable, "-m", __name__, str(self.port)],
                env={**os.environ, **{f"PREFECT_{name}": on for name, on in flags.items()}, **chosen},
                stdin=subprocess.PIPE,
                start_new_session=True,
            )

    if not PREFECT_API_URL.value():
        (server := OwnServer()).start()
        os.environ["PREFECT_API_URL"] = server.api_url  # workers of a task runner would start their own


def migrate() -> None:
    """Gives a new PREFECT_HOME its SQLite database: a copy of an empty one of this version of Prefect.

    Prefect's migrations take half of its server's first start (6 of 11 CPU seconds). The empty database is
    migrated once and kept in the environment (``sys.prefix``), where that can be written.
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
    empty = Path(sys.prefix, "share", "guidespace", f"prefect-{importlib.metadata.version('prefect')}.db")
    if empty.exists():
        copy_unless_there(empty, database)  # half a database would never open again
        return
    asyncio.run(provide_database_interface().create_db())
    with suppress(OSError):
        empty.parent.mkdir(parents=True, exist_ok=True)
        temporary = empty.with_suffix(f".{os.getpid()}.tmp")
        with closing(sqlite3.connect(database)) as made, closing(sqlite3.connect(temporary)) as copy:
            made.backup(copy)
        temporary.replace(empty)


def _serve(port: int) -> None:
    """Runs the server until the client's process is gone or SIGTERM comes."""
    import uvicorn

    def end_with_the_client() -> None:
        sys.stdin.buffer.read()
        os._exit(0)

    threading.Thread(target=end_with_the_client, name="client", daemon=True).start()
    migrate()
    app = "prefect.server.api.server:create_app"
    uvicorn.run(app, factory=True, host="127.0.0.1", port=port, log_level="error", lifespan="on")


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
