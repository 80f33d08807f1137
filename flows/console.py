"""The nightly run on a terminal: progress a person can read, one line for an error that is the input's."""

from __future__ import annotations

import datetime
import importlib
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.exits import DONE, FAILED, INCOMPLETE, expected
from flows.ticker import Ticker
from storage.readings import read_readings

if TYPE_CHECKING:
    from flows.settings import Settings
    from tasks.contest.settings import ContestSettings

ROAD = ("ingest", "check", "tokenize", "preprocess", "train", "augment", "embed", "cluster", "evaluate", "draw", "pack", "promote", "report")  # as flows/nightly.py has it
STATES = {"Finished in state Completed(": "done", "Finished in state Cached(": "unchanged: kept as it is"}
SAID_ELSEWHERE = ("Encountered exception", "Finished in state Failed(", "Beginning flow run", "Created task run", "View at")
WELCOME = "Something in GuideSpace or its surroundings failed. `guidespace doctor` checks the installation; the lines above say where it happened."


def run_nightly(feeds: Sequence[str], home: str, settings: Settings, as_of: datetime.datetime | None, starting: threading.Thread) -> int:
    """Runs the flow in this process and says where the result is."""
    started = time.perf_counter()
    with _at_the_terminal(home, started, starting, "flows.nightly") as flows:
        from tasks.ingest.feeds import conceal

        outcome = flows.nightly(conceal(feeds), str(Path(home).expanduser().resolve()), settings, as_of)
    print(f"\nThe map:    {outcome.map}\nThe scores: {outcome.scores}   (guidespace scores --home {home})\nMLflow run: {outcome.where}")
    state = "champion" if outcome.champion else "not promoted"
    print(
        f"The model:  {outcome.registered_model} version {outcome.version}, {state}: {outcome.reason}\nDone in {time.perf_counter() - started:.1f} s."
    )
    return tell_failed(home)


def run_tune(feeds: Sequence[str], home: str, settings: Settings, contest: ContestSettings, starting: threading.Thread) -> int:
    """Compares rules in this process and prints the table."""
    started = time.perf_counter()
    with _at_the_terminal(home, started, starting, "flows.tune") as flows:
        from tasks.ingest.feeds import conceal

        result = flows.tune(conceal(feeds), str(Path(home).expanduser().resolve()), settings, contest)
    print(f"\n{result.table}\nMLflow run: {result.where}\nDone in {time.perf_counter() - started:.1f} s.")
    return tell_failed(home)


@contextmanager
def _at_the_terminal(home: str, started: float, starting: threading.Thread, module: str) -> Iterator[Any]:
    """Imports the flow's module while Prefect starts, and lets it speak to the terminal."""
    print("starting Prefect …" if not os.environ.get("PREFECT_API_URL") else f"Prefect server: {os.environ['PREFECT_API_URL']}", flush=True)
    logging.captureWarnings(True)  # of libraries, about themselves: two threads that import at a time undo each other's filters
    logging.getLogger("py.warnings").propagate = False
    ticker = Ticker(started)
    with ticker.ticking():
        flows = importlib.import_module(module)
        from storage.tracking.connection import Connection

        Connection(Path(home)).client  # noqa: B018  (MLflow's import and migrations, likewise)
        starting.join()
        _speak(started, ticker)
        yield flows


def explain(error: Exception) -> int:
    """One line for what has a cause outside of GuideSpace, the traceback for all else; returns the exit code."""
    if told := expected(error):
        code, text = told
        print(f"guidespace: {text}", file=sys.stderr)
        return code
    traceback.print_exception(error)
    print(f"guidespace: {type(error).__name__}: {error}\n{WELCOME}", file=sys.stderr)
    return FAILED


def tell_failed(home: str | Path) -> int:
    """Names the feeds that the run went on without; the exit code."""
    failed = [told for told in read_readings(Path(home).expanduser()) if told.failed]
    for told in failed:
        print(f"guidespace: feed FAILED: {told.failed}", file=sys.stderr)
    return INCOMPLETE if failed else DONE


class _Lines(logging.Formatter):
    """Seconds since the start, the stage, the message, states in words; no traceback (``explain`` prints it once)."""

    def __init__(self, started: float) -> None:
        super().__init__()
        self._started = started

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        text = next((words for state, words in STATES.items() if message.startswith(state)), message)
        return f"{time.perf_counter() - self._started:6.1f} s  {getattr(record, 'task_run_name', ''):<10}  {text}"


def _speak(started: float, ticker: Ticker) -> None:
    """Sends what flows and tasks log to the terminal, in one short form."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(_Lines(started))
    handler.addFilter(lambda record: not record.getMessage().startswith(SAID_ELSEWHERE))
    handler.addFilter(lambda record: "failed with exception" not in record.getMessage() or " - Retry " in record.getMessage())  # the last failure is explained
    handler.addFilter(lambda record: ticker.heard(_at_work(record)) or True)
    logging.getLogger("EventsWorker").setLevel(logging.ERROR)  # warns that it still sends events when a run ends early
    for name in ("prefect.flow_runs", "prefect.task_runs"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO)
        logger.addHandler(handler)
        logger.propagate = False


def _at_work(record: logging.LogRecord) -> str:
    """The stage at work after this record: the one that speaks, or the one after it once it has finished."""
    stage = str(getattr(record, "task_run_name", ""))
    if record.getMessage().startswith("Finished in state") and stage in ROAD:
        return (*ROAD, "the end")[ROAD.index(stage) + 1]
    return stage or ROAD[0]
