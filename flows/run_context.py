"""Sets up a flow run: names it, locks the home and opens an MLflow run. Cleans up after crashed runs."""

import datetime
import gc
import re
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from prefect import get_run_logger
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.context import FlowRunContext
from prefect.events import emit_event
from prefect.exceptions import ObjectNotFound, Pause
from prefect.flows import Flow
from prefect.runtime import flow_run as this_run
from prefect.settings import PREFECT_UI_URL
from prefect.states import Crashed
from prefect.task_runners import ThreadPoolTaskRunner
from threadpoolctl import threadpool_limits

from flows import server
from flows.defaults import DEFAULT_HOME, WAIT_SECONDS
from flows.nightly_run import NightlyRun, format_instant
from flows.ownership import FLOW_FILTER, tag_with_home
from storage.home.latest import folders_of_last_run
from storage.home.marker import is_home
from storage.home.retention import prune_artifacts
from storage.home.workspace import Workspace
from storage.home.zones import home_zone
from storage.memory import configure_memory
from storage.tracking import Tracking
from storage.tracking.tags import AS_OF_TAG
from tasks.ingest.sources.feeds import count_feeds, source_of
from tasks.pool import helper_process
from tasks.settings import Settings

# Event that a run emits after its last stage; a suspended run sends heartbeats until its running stage ends.
RUN_ENDED_EVENT = "guidespace.flow-run.left"
# The event is emitted twice, because triggers of Prefect 3.8.8 drop an event while SQLite is locked.
RESEND_SECONDS = 3.0  # pause before the second emission
GENERATED_NAME = re.compile(r"[a-z]+\d*(-[a-z]+)+")


def name_run() -> str:
    """Returns a name for the current flow run, its due time and feeds: "2026-11-21 03:30 guide.xml.gz +2".

    A name that a user has typed is kept, unless it looks like a name that Prefect generates ("adamant-otter",
    or "beta485-ixtelha" in the Run form): lower-case words with hyphens.
    """
    if this_run.name and not GENERATED_NAME.fullmatch(this_run.name):
        return this_run.name
    feeds: Sequence[str] = this_run.parameters.get("feeds") or ["no feed"]
    first_feed = Path(source_of(feeds[0]).rstrip("/")).name
    suffix = f" +{len(feeds) - 1}" if feeds[1:] else ""
    zone = home_zone(this_run.parameters.get("home", DEFAULT_HOME))
    due_time = this_run.scheduled_start_time.astimezone(zone)
    return f"{due_time:%Y-%m-%d %H:%M} {first_feed}{suffix}"


@contextmanager
def open_night(
    home: str,
    feeds: Sequence[str],
    settings: Settings,
    keep: int = 0,
    as_of: datetime.datetime | None = None,
    purpose: str = "nightly run",
) -> Iterator[NightlyRun]:
    """Locks the home, and opens or resumes the MLflow run of this flow run, during the block.

    Runs in the same home wait for each other. After the block, the MLflow run gets the state of the flow, and
    old artifacts are removed, except the artifacts of the last night and, of each kind, the
    max(``keep``, ``publish.keep``) newest artifacts.

    Args:
        home: Folder of the home; created if missing.
        feeds: Feeds of the run, as configured.
        settings: Settings of all stages.
        keep: Number of artifacts of each kind that this flow creates.
        as_of: Instant of the guide that the run uses; None: now.
        purpose: Kind of the run, which processes that wait for the lock print.

    Raises:
        HomeLocked: Another process still writes to the home after WAIT_SECONDS.
    """
    if not gc.get_freeze_count():  # only before the first run, whose garbage must not be frozen later
        gc.freeze()
        configure_memory()
    workspace, logger, flow_run_id = Workspace(home), get_run_logger(), this_run.id or str(uuid.uuid4())
    guide_time = (as_of or datetime.datetime.now(datetime.UTC)).astimezone(datetime.UTC)
    tags = {AS_OF_TAG: format_instant(guide_time)}
    if ui_url := PREFECT_UI_URL.value():
        tags["prefect.flow_run_url"] = f"{ui_url}/runs/flow-run/{flow_run_id}"
    parameters = {"feeds": [source_of(feed) for feed in feeds], **asdict(settings)}
    with (
        _lock_home(workspace, home, f"{purpose} of {count_feeds(feeds)}", flow_run_id),
        # One BLAS thread: the rounding of sums depends on the number of threads, and scikit-learn, which runs
        # in parallel with other stages, sets the number to 1 for the whole process.
        threadpool_limits(1, user_api="blas"),
        helper_process(),
        _announce_end(flow_run_id),
    ):
        tracking = Tracking(workspace.home)
        with _open_mlflow_run(tracking, flow_run_id, this_run.name or purpose, tags, parameters) as run:
            for run_id in tracking.close_stale_runs(run):
                logger.warning("MLflow run %s of a process that died was RUNNING; it is now KILLED", run_id)
            with tracking.system_metrics(run):
                is_backfill = as_of is not None and settings.publish.promote == "never"
                yield NightlyRun(workspace, tracking, run, guide_time, is_backfill)
            prune_artifacts(workspace, max(keep, settings.publish.keep), folders_of_last_run(workspace.home))


@contextmanager
def open_run(home: str, purpose: str, name: str, parameters: Mapping[str, Any]) -> Iterator[str]:
    """Locks an existing home and opens an MLflow run for a flow other than nightly; yields the MLflow run id.

    Args:
        home: Folder of the home, which must exist.
        purpose: Description of the run, which processes that wait for the lock print.
        name: Name of the MLflow run.
        parameters: Parameters of the MLflow run.
    """
    workspace, flow_run_id = Workspace(home, create=False), this_run.id or str(uuid.uuid4())
    with _lock_home(workspace, home, purpose, flow_run_id):
        with _open_mlflow_run(Tracking(workspace.home), flow_run_id, name, {}, parameters) as run:
            yield run


@contextmanager
def _lock_home(workspace: Workspace, home: str, purpose: str, flow_run_id: str) -> Iterator[None]:
    """Locks a home during the block. If the last flow run died with the lock, its state becomes Crashed."""
    wait_options = {"wait_seconds": WAIT_SECONDS, "report_wait": get_run_logger().warning}
    with workspace.writing(purpose, flow_run=flow_run_id, **wait_options) as crashed_id:
        mark_crashed_runs(home, crashed_id, flow_run_id)
        yield


@contextmanager
def _open_mlflow_run(
    tracking: Tracking,
    flow_run_id: str,
    name: str,
    tags: Mapping[str, str],
    parameters: Mapping[str, Any],
) -> Iterator[str]:
    """Opens or resumes the MLflow run of a flow run. Ends it as FINISHED, FAILED or KILLED."""
    logger, run = get_run_logger(), tracking.start_run(flow_run_id, name, tags, parameters)
    logger.info("MLflow: %s", tracking.run_location(run))
    try:
        yield run
    except BaseException as error:
        try:
            tracking.set_tags(run, {"guidespace.error": f"{type(error).__name__}: {error}"[:500]})
            tracking.end_run(run, "FAILED" if isinstance(error, Exception) else "KILLED")
        except Exception as tracking_error:  # a full disk or a lost server; the first error is raised
            logger.warning(
                "MLflow run %s stays RUNNING until the next run of this home: %s", run, tracking_error
            )
        raise
    tracking.end_run(run)


@contextmanager
def _announce_end(flow_run_id: str) -> Iterator[None]:
    """After the block, waits for the end of running stages, which may write files. Emits RUN_ENDED_EVENT."""
    resource = {"prefect.resource.id": f"prefect.flow-run.{flow_run_id}"}
    try:
        yield
    except Pause:
        emit_event(RUN_ENDED_EVENT, resource=resource)
        time.sleep(RESEND_SECONDS)
        raise
    finally:
        if context := FlowRunContext.get():
            if isinstance(runner := context.task_runner, ThreadPoolTaskRunner):
                runner.cancel_all()  # waits for tasks that have begun
            emit_event(RUN_ENDED_EVENT, resource=resource)


def mark_crashed_runs(home: str, crashed_id: str, flow_run_id: str) -> None:
    """Sets flow runs to Crashed if they were started by commands whose process has died.

    No worker monitors such runs. If this process started the Prefect server, all runs of the home that are
    Running and older than the server have died, too. Retried runs are skipped, because the process of a later
    attempt may be waiting.

    Args:
        home: Folder of the home, in the form in which parameters of flow runs name it.
        crashed_id: Id of the flow run that died while it held the lock of the home; '' if none.
        flow_run_id: Id of the current flow run.
    """
    crashed_id = crashed_id if crashed_id != flow_run_id else ""
    if not FlowRunContext.get() or not (crashed_id or server.started_at):
        return
    with get_client(sync_client=True) as client:
        runs = []
        if crashed_id:
            with suppress(ObjectNotFound):  # the flow run is on another server
                runs.append(client.read_flow_run(uuid.UUID(crashed_id)))
        if server.started_at:
            runs += _find_older_runs(client, home, server.started_at)
        for run in runs:
            if run.state and run.state.is_running() and run.run_count <= 1:
                crashed_state = Crashed(message="The process of this run died; the next run detected it.")
                client.set_flow_run_state(run.id, crashed_state, force=True)


def _find_older_runs(
    client: SyncPrefectClient, home: str, started_before: datetime.datetime
) -> list[FlowRun]:
    """Returns the flow runs of a home that are in the state Running and began before an instant."""
    running_filter = FlowRunFilter(
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.RUNNING]))
    )
    runs = client.read_flow_runs(flow_filter=FLOW_FILTER, flow_run_filter=running_filter)
    return [
        run
        for run in runs
        if run.parameters.get("home") == home and run.start_time and run.start_time < started_before
    ]


def end_mlflow_run(flow: Flow[Any, Any] | None, flow_run: FlowRun, state: State) -> None:
    """Ends the MLflow run of a flow run that has crashed or was cancelled (hook of the flows)."""
    home = Path(str(flow_run.parameters.get("home", DEFAULT_HOME))).expanduser()
    if is_home(home):
        Tracking(home).close_orphans(str(flow_run.id))


# Hooks of flows that open an MLflow run.
RUN_HOOKS: dict[str, Any] = {
    "on_running": [tag_with_home],
    "on_crashed": [end_mlflow_run],
    "on_cancellation": [end_mlflow_run],
}
