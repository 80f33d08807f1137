"""Prefect's own server for a run without another: started before anything heavy is imported, in the home like the rest.

Booting it takes longer than our imports; started first, they overlap. Nothing of ours that is heavy is imported here.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from pathlib import Path

from storage.workspace import Workspace


def start_prefect(home: str | Path) -> threading.Thread:
    """Starts the server in a thread, unless PREFECT_API_URL names one; what a client's first call would do, only earlier.

    Raises:
        HomeLocked: Somebody writes to the home: said at once, not after Prefect has started.
    """
    workspace = Workspace(home)
    with workspace.writing("nightly run"):
        pass
    _point_prefect_at(workspace.home)

    def start() -> None:
        from prefect.settings import PREFECT_API_URL

        from flows.own_server import OwnServer

        if not PREFECT_API_URL.value():
            OwnServer().start()

    thread = threading.Thread(target=start, name="prefect-start", daemon=True)
    thread.start()
    return thread


def leave(code: int) -> None:
    """Ends the process at once: exit functions run, then no teardown (that of torch, MLflow and Prefect takes two seconds).

    Prefect's worker threads are emptied first: while one holds a connection, the server waits five seconds for it.
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
    """Without a server of the user's, Prefect's own one writes into the home."""
    chosen = any(name in os.environ for name in ("PREFECT_API_URL", "PREFECT_HOME", "PREFECT_PROFILE"))
    if not chosen and not (Path.home() / ".prefect" / "profiles.toml").exists():
        os.environ["PREFECT_HOME"] = str(home / "prefect")
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "WARNING")
    os.environ.setdefault("PREFECT_SERVER_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "120")
