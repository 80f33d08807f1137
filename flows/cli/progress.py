"""A flow run on a terminal: a line for every message, a bar of stages (elsewhere a line for a stage that has
been silent for some seconds), one line for an error of the input.
"""

import importlib
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from flows.cli.exits import DONE, FAILED, INCOMPLETE, expected, signalled
from storage.addresses import without_secrets
from storage.home.readings import read_readings

STATES = {"Finished in state Completed(": "done", "Finished in state Cached(": "unchanged: kept as it is"}
SAID = (  # what the lines of ours say too
    "Encountered exception",
    "Finished in state Failed(",
    "Beginning flow run",
    "Created task run",
    "View at",
    "Running hook ",
    "Hook ",
)
HELP = (
    "Something in GuideSpace or its surroundings failed. `guidespace doctor` checks the installation; "
    "the lines above say where it happened."
)
NIGHTLY = """
The map:    {map}
The scores: {scores}   (guidespace scores --home {home})
MLflow run: {where}
The model:  {registered_model} version {version}, {state}: {reason}"""
COMPARED = "\n{table}\nMLflow run: {where}"
RESULTS = {"nightly": NIGHTLY, "tune": COMPARED, "ablate": COMPARED}
STAGES = (
    "ingest", "check", "tokenize", "preprocess", "baselines", "train", "augment", "embed", "neighbours",
    "layout", "cluster", "evaluate", "draw", "pack", "register", "promote", "report",
)  # fmt: skip
MEMBER = "member"  # pieces of a search, hundreds of them: tasks/train/tuning/task.py
QUIET_SECONDS = 3.0  # without a message for so long: print which stage is at work


class Ticker:
    """Prints messages with the seconds since ``started`` (of time.perf_counter) and the stage at work."""

    def __init__(self, started: float) -> None:
        self._started = self._since = self._last = started
        self._stage, self._lock, self._ended = "Prefect", threading.Lock(), threading.Event()
        self._done: set[str] = set()  # stages; some run side by side
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=Console(), transient=True, disable=not sys.stdout.isatty())
        self._task = self._bar.add_task(self._stage, total=len(STAGES))
        self._thread = threading.Thread(target=self._watch, name="ticker", daemon=True)

    def __enter__(self) -> Self:
        self._bar.start()
        if self._bar.disable:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._bar.stop()
        if self._bar.disable:
            self._thread.join()

    def print(self, stage: str, text: str, *, ended: bool = False) -> None:
        """Prints a message of a stage, which is at work from now on; the next one is where it has ended.

        Nothing after a signal: what Prefect makes of it would stand above the one line that tells all.
        """
        if signalled():
            return
        with self._lock:
            now = self._last = time.perf_counter()
            line = f"{now - self._started:6.1f} s  {stage:<10}  {text}"
            self._bar.console.print(line, soft_wrap=True, markup=False, emoji=False, highlight=False)
            if ended and stage in STAGES:
                self._done.add(stage)
            left = (name for name in STAGES if name not in self._done)  # the first is at work, or the next
            work = next(left, "the end") if stage in self._done or not stage else stage
            if work != self._stage:
                self._stage, self._since = work, now
            self._bar.update(self._task, completed=len(self._done), description=work)

    def _watch(self) -> None:
        while not self._ended.wait(0.5):
            self.report_quiet(time.perf_counter())

    def report_quiet(self, now: float) -> None:
        """Prints which stage is at work if nothing was printed in the ``QUIET_SECONDS`` before ``now``."""
        if now - self._last >= QUIET_SECONDS:
            self.print(self._stage, f"at work for {now - self._since:.0f} s")


def run(
    name: Literal["nightly", "tune", "ablate"],
    feeds: list[str],
    home: str,
    given: Mapping[str, Any],
    starting: Callable[[], None] | None,
) -> int:
    """Runs a flow over feeds (``run_flow``); prints where the result is. Returns the exit code."""
    from tasks.ingest.sources.feeds import conceal

    started, folder = time.perf_counter(), Path(home).expanduser()
    arguments = {"feeds": conceal(feeds), "home": str(folder.resolve()), **given}
    result = vars(run_flow(name, home, arguments, starting))
    state = "champion" if result.get("champion") else "not promoted"
    print(RESULTS[name].format(home=home, state=state, **result))
    print(f"Done in {time.perf_counter() - started:.1f} s.")
    failed = [feed.failed for feed in read_readings(folder) if feed.failed]
    for reason in failed:
        print(f"guidespace: feed FAILED: {reason}", file=sys.stderr)
    return INCOMPLETE if failed else DONE


def run_flow(
    name: Literal["nightly", "tune", "ablate", "patterns"],
    home: str,
    arguments: Mapping[str, Any],
    starting: Callable[[], None] | None,
) -> Any:
    """Runs a flow in this process, its module imported while Prefect starts; prints what it logs."""
    started, url = time.perf_counter(), os.environ.get("PREFECT_API_URL", "as Prefect's profile has it")
    print("starting Prefect …" if starting else f"Prefect server: {without_secrets(url)}", flush=True)
    # Of libraries, about themselves: two threads that import at a time undo each other's filters.
    logging.captureWarnings(True)
    logging.getLogger("py.warnings").propagate = False
    with Ticker(started) as ticker:
        flow = getattr(importlib.import_module(f"flows.{name}"), name)
        from storage.tracking.connection import Connection

        Connection(Path(home)).client  # noqa: B018  (MLflow's import and migrations, likewise)
        from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

        if starting:
            starting()
        _print_logs(ticker)
        # Nobody watches on a server of the run's own, and heartbeats take up to a second to end.
        with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None} if starting else {}):
            return flow(**arguments)


def explain(error: Exception) -> int:
    """Prints one line for an error with an outside cause, else the traceback; returns the exit code."""
    if found := expected(error):
        print(f"guidespace: {found[1]}", file=sys.stderr)
        return found[0]
    traceback.print_exception(error)
    print(f"guidespace: {type(error).__name__}: {error}\n{HELP}", file=sys.stderr)
    return FAILED


def _print_logs(ticker: Ticker) -> None:
    """Prints what flows and tasks log, states in words; tracebacks are left to ``explain``."""

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            message, stage = record.getMessage(), str(getattr(record, "task_run_name", ""))
            last_failure = "failed with exception" in message and " - Retry " not in message
            if not message.startswith(SAID) and not last_failure and stage != MEMBER:
                text = next((words for state, words in STATES.items() if message.startswith(state)), message)
                ticker.print(stage, text, ended=message.startswith("Finished in state"))

    # It warns that it still sends events when a run ends early.
    logging.getLogger("EventsWorker").setLevel(logging.ERROR)
    for name in ("prefect.flow_runs", "prefect.task_runs"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO)
        logger.addHandler(Lines())
        logger.propagate = False
