"""The nightly run on a terminal: progress a person can read, one line for an error that is the input's."""

from __future__ import annotations

import logging
import os
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from flows.settings import SettingError, Settings
from storage.tracking.connection import Connection
from storage.workspace import HomeError, Workspace

STATES = {"Finished in state Completed(": "done", "Finished in state Cached(": "unchanged: kept as it is"}
SAID_ELSEWHERE = ("Encountered exception", "Finished in state Failed(", "Beginning flow run", "Created task run", "View at")
WELCOME = "Something in GuideSpace or its surroundings failed. `guidespace doctor` checks the installation; the lines above say where it happened."


def run_nightly(feeds: Sequence[str], home: str, settings: Settings) -> int:
    """Runs the flow in this process and says where the result is."""
    started = time.perf_counter()
    with Workspace(home).writing("nightly run"):
        pass  # a home in use is refused at once, not after Prefect has started
    _point_prefect_at(Path(home))
    print("starting Prefect …" if not os.environ.get("PREFECT_API_URL") else f"Prefect server: {os.environ['PREFECT_API_URL']}", flush=True)
    Connection(Path(home)).warm_up()  # MLflow's import and migrations, while Prefect starts
    from flows.nightly import nightly

    _speak(started)
    outcome = nightly(list(feeds), str(Path(home).expanduser().resolve()), settings)
    print(f"\nThe map:    {outcome.map}\nThe scores: {outcome.scores}   (guidespace scores --home {home})\nMLflow run: {outcome.where}")
    print(f"The model:  version {outcome.version}, {'champion' if outcome.champion else 'not promoted'}: {outcome.reason}\nDone in {time.perf_counter() - started:.1f} s.")
    return 0


def explain(error: Exception) -> int:
    """One line for what the user can mend (exit code 2); the traceback and where to look for all else (exit code 1)."""
    expected = _expected_errors()
    if isinstance(error, expected):
        print(f"guidespace: {error}", file=sys.stderr)
        return 2
    traceback.print_exception(error)
    print(f"guidespace: {type(error).__name__}: {error}\n{WELCOME}", file=sys.stderr)
    return 1


def _expected_errors() -> tuple[type[Exception], ...]:
    from tasks.ingest.feeds import FeedError

    kinds: list[type[Exception]] = [SettingError, HomeError, FeedError]
    if "tasks.neighbours.search" in sys.modules:
        from tasks.neighbours.search import SearchError

        kinds.append(SearchError)
    if "tasks.preprocess.task" in sys.modules:
        from tasks.preprocess.task import TooFewTitles

        kinds.append(TooFewTitles)
    return tuple(kinds)


def _point_prefect_at(home: Path) -> None:
    """Without a server of the user's, Prefect's own one writes into the home, like everything else."""
    place = Workspace(home).home
    chosen = any(name in os.environ for name in ("PREFECT_API_URL", "PREFECT_HOME", "PREFECT_PROFILE"))
    if not chosen and not (Path.home() / ".prefect" / "profiles.toml").exists():
        os.environ["PREFECT_HOME"] = str(place / "prefect")
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "WARNING")
    os.environ.setdefault("PREFECT_SERVER_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "120")


class _Lines(logging.Formatter):
    """Seconds since the start, the stage, the message, states in words; no traceback (``explain`` prints it once)."""

    def __init__(self, started: float) -> None:
        super().__init__()
        self._started = started

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        text = next((words for state, words in STATES.items() if message.startswith(state)), message)
        return f"{time.perf_counter() - self._started:6.1f} s  {getattr(record, 'task_run_name', ''):<10}  {text}"


def _speak(started: float) -> None:
    """Sends what flows and tasks log to the terminal, in one short form."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(_Lines(started))
    handler.addFilter(lambda record: not record.getMessage().startswith(SAID_ELSEWHERE))
    logging.getLogger("EventsWorker").setLevel(logging.ERROR)  # warns that it still sends events when a run ends early
    for name in ("prefect.flow_runs", "prefect.task_runs"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO)
        logger.addHandler(handler)
        logger.propagate = False
