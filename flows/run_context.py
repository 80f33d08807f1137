"""What surrounds a night: the lock, the MLflow run linked with the flow run, the pointer to the result."""

import datetime
import gc
import re
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from coolname.data import config as NAMES  # Prefect's dependency: the words it makes names of
from prefect import get_run_logger
from prefect.artifacts import create_link_artifact, create_markdown_artifact
from prefect.client.orchestration import get_client
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
from prefect.states import Completed, Crashed
from prefect.task_runners import ThreadPoolTaskRunner
from threadpoolctl import threadpool_limits

from flows import server
from flows.ownership import OUR_FLOWS
from flows.settings import Settings
from storage.artifacts import Corpus, Model, Page, Scores
from storage.home.latest import folders_of_last_run, last_instant, write_latest
from storage.home.retention import prune
from storage.home.workspace import Workspace, newest_first
from storage.home.zones import home_zone
from storage.memory import configure_memory
from storage.tracking import Tracking
from storage.tracking.nights import AS_OF, read_nights
from storage.tracking.runs import FIGURES
from tasks.ingest.sources.feeds import source_of
from tasks.pool import helper_process
from tasks.publish.inputs import PreviousNight
from tasks.publish.report import Report, Verdict

WAIT_SECONDS = 6 * 3600.0  # for another run in the home; then the run fails and says who holds it
# A suspended run continues, with heartbeats, to the end of its stage, and then exits: Prefect tells nobody.
LEFT = "guidespace.flow-run.left"
MOST_NIGHTS = 1_000  # among which the night before one of the past is looked for
# Until it is said again: Prefect's triggers drop an event when SQLite is locked (3.8.8).
AGAIN_SECONDS = 3.0
GREEK = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau"
OF_STARS = re.compile(rf"({'|'.join([*GREEK.split(), 'upsilon', 'phi', 'chi', 'psi', 'omega'])})\d+-[a-z-]+")


@dataclass(frozen=True, kw_only=True)
class NightlyResult:
    """Where the result of a nightly run is."""

    map: str  # path of the HTML map
    scores: str  # path of scores.json
    run: str  # MLflow run id
    where: str  # how a person opens that run
    registered_model: str  # what serves is models:/NAME@champion
    version: str
    champion: bool  # that version serves now
    reason: str  # the gate's


@dataclass(frozen=True)
class NightlyRun:
    """A nightly run in progress."""

    workspace: Workspace
    tracking: Tracking
    run: str
    at: datetime.datetime  # the instant whose knowledge it uses
    past: bool  # a back-filled one: as of an instant of the past, and never promoted

    def previous(self) -> PreviousNight:
        """Finds the last night whose instant is before this one; empty if there is none."""
        nights = read_nights(self.tracking, MOST_NIGHTS if self.past else 2)
        before = next((one for one in reversed(nights) if one.at < self.at and one.run != self.run), None)
        if before is None:
            return PreviousNight()
        headline = f"{FIGURES}/"
        figures = {
            name.removeprefix(headline): value
            for name, value in before.metrics.items()
            if name.startswith(headline)
        }
        models = (one for one in newest_first(self.workspace, Model) if one.digest == before.model)
        folder = next(map(self.workspace.folder, models), "")
        return PreviousNight(figures=figures, model_folder=str(folder))

    def result(
        self, corpus: Corpus, scores: Scores, page: Page, model: Model, verdict: Verdict, report: Report
    ) -> NightlyResult:
        """Publishes the result: on the flow run's page, in the home's pointer, and to the caller.

        A Prefect artifact made in a task belongs to that task, and the flow run's page lists none. In a flow
        run the result is the data of a state whose message is the verdict, which Prefect unwraps.
        """
        in_run = FlowRunContext.get() is not None
        if in_run:
            create_markdown_artifact(report.markdown, key="nightly-report", description=verdict.message)
        if in_run and report.link:
            about = "Figures, parameters, plots, map and model of this run"
            create_link_artifact(report.link, link_text="MLflow run", key="mlflow-run", description=about)
        folder = self.workspace.folder
        result = NightlyResult(
            map=str(folder(page) / "map.html"),
            scores=str(folder(scores) / "scores.json"),
            run=self.run,
            where=self.tracking.where(self.run),
            registered_model=verdict.name,
            version=verdict.version,
            champion=verdict.champion,
            reason=verdict.reason,
        )
        made = {"model": folder(model), "corpus": folder(corpus), "as_of": instant_text(self.at)}
        if not self.past or last_instant(self.workspace.home) <= made["as_of"]:
            write_latest(self.workspace.home, {**asdict(result), **made})
        return cast(NightlyResult, Completed(message=verdict.message, data=result)) if in_run else result


def instant_text(moment: datetime.datetime) -> str:
    """An instant as runs and the pointer carry it: ISO in UTC, which sorts as text."""
    return moment.astimezone(datetime.UTC).isoformat(timespec="seconds")


def name_run() -> str:
    """The name that a flow run was given, or due time and feeds: "2026-11-21 03:30 guide.xml.gz +2"."""
    if this_run.name and not _is_generated(this_run.name):
        return this_run.name
    feeds: Sequence[str] = this_run.parameters.get("feeds") or ["no feed"]
    first, more = Path(source_of(feeds[0]).rstrip("/")).name, f" +{len(feeds) - 1}" if feeds[1:] else ""
    zone = home_zone(this_run.parameters.get("home", "guidespace-home"))
    due = this_run.scheduled_start_time.astimezone(zone)
    return f"{due:%Y-%m-%d %H:%M} {first}{more}"


def _is_generated(name: str) -> bool:
    """Whether Prefect drew the name at random from its lists: "adamant-otter"; its Run form, of stars:
    "beta485-ixtelha". One in nine of the form's has no number, and stays.
    """
    if OF_STARS.fullmatch(name):
        return True
    known = [words for about in NAMES.values() for words in about.get("words", ())]
    return name.count("-") == 1 and set(name.split("-")) <= set(known)


@contextmanager
def open_night(
    home: str,
    feeds: Sequence[str],
    settings: Settings,
    keep: int = 0,
    as_of: datetime.datetime | None = None,
) -> Iterator[NightlyRun]:
    """Holds the home, opens the MLflow run of this flow run (or resumes it), and ends it as the flow ends.
    ``keep`` artifacts of each kind stay, or ``publish.keep`` if that is more, and those of the last night.

    A run waits for another one in its home; runs in other homes run beside it.

    Raises:
        HomeLocked: Another process still writes to the home after WAIT_SECONDS.
    """
    if not gc.get_freeze_count():  # once a process: what is imported stays, the garbage of nights does not
        gc.freeze()
        configure_memory()
    workspace, logger, flow_run_id = Workspace(home), get_run_logger(), this_run.id or str(uuid.uuid4())
    what = f"nightly run of {len(feeds)} feed{'s' if len(feeds) != 1 else ''}"
    waiting = {"wait_seconds": WAIT_SECONDS, "report_wait": logger.warning}
    with (
        workspace.writing(what, flow_run=flow_run_id, **waiting) as died,
        _one_blas_thread(),
        helper_process(),
    ):
        mark_crashed(home, died, flow_run_id)
        tracking = Tracking(workspace.home)
        parameters = {"feeds": [source_of(feed) for feed in feeds], **asdict(settings)}
        page = f"{PREFECT_UI_URL.value()}/runs/flow-run/{flow_run_id}"
        at = (as_of or datetime.datetime.now(datetime.UTC)).astimezone(datetime.UTC)
        tags = {AS_OF: instant_text(at)}
        tags |= {"prefect.flow_run_url": page} if PREFECT_UI_URL.value() else {}
        run = tracking.start_run(flow_run_id, this_run.name or "nightly", tags, parameters)
        logger.info("MLflow: %s", tracking.where(run))
        for left in tracking.close_stale_runs(run):
            logger.warning("MLflow run %s was left RUNNING by a run of this home that died; now KILLED", left)
        try:
            with tracking.system_metrics(run):
                past = as_of is not None and settings.publish.promote == "never"
                yield NightlyRun(workspace, tracking, run, at, past)
            prune(workspace, max(keep, settings.publish.keep), folders_of_last_run(workspace.home))
        except BaseException as error:
            try:
                tracking.set_tags(run, {"guidespace.error": f"{type(error).__name__}: {error}"[:500]})
                tracking.end_run(run, "FAILED" if isinstance(error, Exception) else "KILLED")
            except Exception as also:  # a full disk, a server that is gone: the first error tells more
                logger.warning("MLflow run %s stays RUNNING until the next run of this home: %s", run, also)
            if isinstance(error, Pause):
                _tell_left(flow_run_id)
                time.sleep(AGAIN_SECONDS)
            raise
        finally:
            if context := FlowRunContext.get():
                if isinstance(runner := context.task_runner, ThreadPoolTaskRunner):
                    runner.cancel_all()  # waits for those at work: they write to the home
                _tell_left(flow_run_id)
        tracking.end_run(run)


def _one_blas_thread() -> threadpool_limits:
    """The bits of NumPy's sums depend on the number of BLAS threads, and scikit-learn, in a baseline beside
    another stage, sets it to 1 for the whole process: whether a model was the same was a race.
    """
    return threadpool_limits(1, user_api="blas")


def mark_crashed(home: str, died: str, own: str) -> None:
    """Marks the flow run Crashed that died with the home in its hands: a command's has no worker that would.
    On a command's own server also runs of the home that are older than it: a disk that was full at their end
    left them Running.

    Of a run that was tried again, the one that runs may be another process, which waits for the home.
    """
    has_died = died not in ("", own)
    if not FlowRunContext.get() or not (has_died or server.own_since):
        return
    with get_client(sync_client=True) as client:
        left = []
        if has_died:
            with suppress(ObjectNotFound):  # on another server
                left = [client.read_flow_run(uuid.UUID(died))]
        if since := server.own_since:
            running = FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.RUNNING]))
            for run in client.read_flow_runs(
                flow_filter=OUR_FLOWS, flow_run_filter=FlowRunFilter(state=running)
            ):
                if run.parameters.get("home") == home and run.start_time and run.start_time < since:
                    left.append(run)
        for run in left:
            if run.state and run.state.is_running() and run.run_count <= 1:
                crashed = Crashed(message="Its process died; the next run of the home found that.")
                client.set_flow_run_state(run.id, crashed, force=True)


def _tell_left(flow_run_id: str) -> None:
    emit_event(LEFT, resource={"prefect.resource.id": f"prefect.flow-run.{flow_run_id}"})


def close_crashed(flow: Flow[Any, Any] | None, flow_run: FlowRun, state: State) -> None:
    """Hook: ends the MLflow run of a flow run whose process died or was cancelled."""
    home = Path(str(flow_run.parameters.get("home", "guidespace-home"))).expanduser()
    if (home / "home.json").exists():
        Tracking(home).close_orphans(str(flow_run.id))
