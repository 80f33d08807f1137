"""Prints the progress and the result of a flow run: messages, a progress bar of stages, and errors.

If the output is not a terminal, there is no progress bar. Instead, the current stage is printed after
QUIET_SECONDS without a message.
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

from flows.cli.exits import DONE, FAILED, INCOMPLETE, expected_error, signal_received
from storage.addresses import without_secrets
from storage.home.readings import read_readings

STATE_TEXTS = {"Finished in state Completed(": "done", "Finished in state Cached(": "unchanged, reused"}
REDUNDANT_PREFIXES = (  # starts of Prefect's messages that repeat messages of GuideSpace
    "Encountered exception",
    "Finished in state Failed(",
    "Beginning flow run",
    "Created task run",
    "View at",
    "Running hook ",
    "Hook ",
)
UNEXPECTED_ERROR = (
    "An unexpected error occurred. `guidespace doctor` checks the installation; "
    "the lines above say where it happened."
)
NIGHTLY_RESULT = """
The map:    {map}
The scores: {scores}   (guidespace scores --home {home})
MLflow run: {where}
The model:  {registered_model} version {version}, {state}: {reason}"""
COMPARISON_RESULT = "\n{table}\nMLflow run: {where}"
RESULTS = {"nightly": NIGHTLY_RESULT, "tune": COMPARISON_RESULT, "ablate": COMPARISON_RESULT}
STAGES = (
    "ingest", "check", "tokenize", "preprocess", "baselines", "train", "augment", "embed", "neighbours",
    "layout", "cluster", "evaluate", "draw", "pack", "register", "promote", "report",
)  # fmt: skip
# Name of tasks whose messages are not printed: each trains one of the hundreds of models of a search.
HIDDEN_TASK = "member"
QUIET_SECONDS = 3.0  # seconds without a message after which the current stage is printed


class ProgressPrinter:
    """Prints messages with the elapsed seconds and the stage, and a progress bar of the stages.

    Args:
        start_time: Start of the run, a value of time.perf_counter.
    """

    def __init__(self, start_time: float) -> None:
        self._start_time = self._stage_start = self._last_message_time = start_time
        self._stage, self._lock, self._stop_event = "Prefect", threading.Lock(), threading.Event()
        self._done_stages: set[str] = set()  # finished stages; some run in parallel
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=Console(), transient=True, disable=not sys.stdout.isatty())
        self._task = self._bar.add_task(self._stage, total=len(STAGES))
        self._thread = threading.Thread(target=self._report_regularly, name="progress", daemon=True)

    def __enter__(self) -> Self:
        self._bar.start()
        if self._bar.disable:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_event.set()
        self._bar.stop()
        if self._bar.disable:
            self._thread.join()

    def print(self, stage: str, text: str, *, stage_ended: bool = False) -> None:
        """Prints a message of a stage and updates the progress bar.

        The progress bar then shows this stage or, if ``stage_ended``, the next unfinished stage. After a
        signal, nothing is printed.
        """
        if signal_received():
            return
        with self._lock:
            now = self._last_message_time = time.perf_counter()
            line = f"{now - self._start_time:6.1f} s  {stage:<10}  {text}"
            self._bar.console.print(line, soft_wrap=True, markup=False, emoji=False, highlight=False)
            if stage_ended and stage in STAGES:
                self._done_stages.add(stage)
            current_stage = stage
            if not stage or stage in self._done_stages:
                first = STAGES.index(stage) if stage in STAGES else 0  # earlier stages may have been skipped
                current_stage = next(
                    (name for name in STAGES[first:] if name not in self._done_stages), "the end"
                )
            if current_stage != self._stage:
                self._stage, self._stage_start = current_stage, now
            self._bar.update(self._task, completed=len(self._done_stages), description=current_stage)

    def _report_regularly(self) -> None:
        while not self._stop_event.wait(0.5):
            self.report_quiet(time.perf_counter())

    def report_quiet(self, now: float) -> None:
        """Prints the current stage if the last message was printed at least QUIET_SECONDS before ``now``."""
        if now - self._last_message_time >= QUIET_SECONDS:
            self.print(self._stage, f"running for {now - self._stage_start:.0f} s")


def run_and_report(
    name: Literal["nightly", "tune", "ablate"],
    feeds: list[str],
    home: str,
    parameters: Mapping[str, Any],
    wait_for_server: Callable[[], None] | None,
) -> int:
    """Runs a flow that reads feeds, prints the locations of its results, and returns the exit code.

    Args:
        name: Name of the flow.
        feeds: Paths and URLs of the feeds.
        home: Folder of the home.
        parameters: Other parameters of the flow.
        wait_for_server: Waits until the Prefect server of this process answers; None: there is no server.
    """
    from tasks.ingest.sources.feeds import conceal_secrets

    start_time, folder = time.perf_counter(), Path(home).expanduser()
    arguments = {"feeds": conceal_secrets(feeds), "home": str(folder.resolve()), **parameters}
    result = vars(run_flow(name, home, arguments, wait_for_server))
    state = "champion" if result.get("champion") else "not promoted"
    print(RESULTS[name].format(home=home, state=state, **result))
    print(f"Done in {time.perf_counter() - start_time:.1f} s.")
    failures = [feed.failed for feed in read_readings(folder) if feed.failed]
    for reason in failures:
        print(f"guidespace: feed FAILED: {reason}", file=sys.stderr)
    return INCOMPLETE if failures else DONE


def run_flow(
    name: Literal["nightly", "tune", "ablate", "patterns"],
    home: str,
    arguments: Mapping[str, Any],
    wait_for_server: Callable[[], None] | None,
) -> Any:
    """Runs a flow in this process, prints its log, and returns the result of the flow.

    Args:
        name: Name of the flow and of its module, which is imported while Prefect starts.
        home: Folder of the home.
        arguments: Parameters of the flow.
        wait_for_server: Waits until the Prefect server of this process answers; None: there is no server.
    """
    start_time, url = time.perf_counter(), os.environ.get("PREFECT_API_URL", "of Prefect's profile")
    print("starting Prefect …" if wait_for_server else f"Prefect server: {without_secrets(url)}", flush=True)
    # Hides warnings of libraries here, because filters of threads that import in parallel are unreliable.
    logging.captureWarnings(True)
    logging.getLogger("py.warnings").propagate = False
    with ProgressPrinter(start_time) as printer:
        flow = getattr(importlib.import_module(f"flows.{name}"), name)
        from storage.tracking.connection import MlflowConnection

        MlflowConnection(Path(home)).client  # noqa: B018  (imports and migrates MLflow meanwhile)
        from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

        if wait_for_server:
            wait_for_server()
        _print_logs(printer)
        # A temporary server needs no heartbeats, and ending the heartbeat thread takes up to a second.
        with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None} if wait_for_server else {}):
            return flow(**arguments)


def report_error(error: Exception) -> int:
    """Prints an expected error as one line, and any other error with its traceback. Returns the exit code."""
    if expected := expected_error(error):
        code, message = expected
        print(f"guidespace: {message}", file=sys.stderr)
        return code
    traceback.print_exception(error)
    print(f"guidespace: {type(error).__name__}: {error}\n{UNEXPECTED_ERROR}", file=sys.stderr)
    return FAILED


def _print_logs(printer: ProgressPrinter) -> None:
    """Prints log messages of flows and tasks by ``printer``, without Prefect's prefixes and tracebacks."""

    class LogPrinter(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            message, stage = record.getMessage(), str(getattr(record, "task_run_name", ""))
            is_last_failure = "failed with exception" in message and " - Retry " not in message
            if not message.startswith(REDUNDANT_PREFIXES) and not is_last_failure and stage != HIDDEN_TASK:
                text = next(
                    (state_text for state, state_text in STATE_TEXTS.items() if message.startswith(state)),
                    message,
                )
                printer.print(stage, text, stage_ended=message.startswith("Finished in state"))

    # Hides the warning that events are still being sent when a run ends early.
    logging.getLogger("EventsWorker").setLevel(logging.ERROR)
    for name in ("prefect.flow_runs", "prefect.task_runs"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO)
        logger.addHandler(LogPrinter())
        logger.propagate = False
