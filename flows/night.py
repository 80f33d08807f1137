"""What surrounds a nightly run: the writer's lock, the MLflow run linked both ways with Prefect, and the pointer to what came out."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from coolname.data import config as NAMES  # Prefect's dependency: the words it makes names of
from prefect import get_run_logger
from prefect.artifacts import create_link_artifact, create_markdown_artifact
from prefect.client.schemas.objects import FlowRun, State
from prefect.context import FlowRunContext
from prefect.events import emit_event
from prefect.flows import Flow
from prefect.runtime import flow_run as this_run
from prefect.settings import PREFECT_UI_URL
from prefect.states import Completed

from flows.latest import read_figures, write_latest
from flows.settings import Settings
from storage.artifacts import Corpus, Model, Page, Scores
from storage.pruning import prune
from storage.tracking import Tracking
from storage.workspace import Workspace
from tasks.ingest.feeds import source_of
from tasks.publish.report import Report
from tasks.publish.verdict import Verdict

WAIT_SECONDS = 6 * 3600.0  # for another run in the home; then the run fails and says who holds it
# A suspended run works on to the end of its stage, with heartbeats, and then goes; Prefect has no event for that.
LEFT = "guidespace.flow-run.left"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Where the result of a nightly run is.

    Attributes:
        map: Path of the HTML map.
        scores: Path of scores.json.
        run: MLflow run id.
        where: How a person opens that run.
        registered_model: Name of the registered model; what serves is models:/NAME@champion.
        version: Version of the registered model.
        champion: Whether that version serves now.
        reason: What the gate said.
    """

    map: str
    scores: str
    run: str
    where: str
    registered_model: str
    version: str
    champion: bool
    reason: str


@dataclass(frozen=True)
class Night:
    """A nightly run under way."""

    workspace: Workspace
    tracking: Tracking
    run: str

    @property
    def before(self) -> dict[str, float]:
        """Headline figures of the run before; empty where none has finished."""
        return read_figures(self.workspace.home)

    def outcome(
        self, corpus: Corpus, scores: Scores, page: Page, model: Model, verdict: Verdict, report: Report
    ) -> Outcome:
        """Reports: on the flow run's page, in the pointer that `guidespace scores` and people follow, to the caller.

        The artifacts are made here and not in the task: one made in a task stands under that task, and the flow
        run's page says that it has none.

        Returns:
            The outcome; in a flow run it is the data of a state whose message is the verdict, which Prefect unwraps.
        """
        if FlowRunContext.get():
            create_markdown_artifact(report.markdown, key="nightly-report", description=verdict.message)
            if report.link:
                create_link_artifact(
                    link=report.link,
                    link_text="MLflow run",
                    key="mlflow-run",
                    description="Figures, parameters, plots, map and model of this run",
                )
        outcome = Outcome(
            map=str(self.workspace.folder(page) / "map.html"),
            scores=str(self.workspace.folder(scores) / "scores.json"),
            run=self.run,
            where=self.tracking.where(self.run),
            registered_model=verdict.name,
            version=verdict.version,
            champion=verdict.champion,
            reason=verdict.reason,
        )
        folders = {"model": self.workspace.folder(model), "corpus": self.workspace.folder(corpus)}
        write_latest(self.workspace.home, {**asdict(outcome), **folders, "figures": report.figures})
        return (
            cast(Outcome, Completed(message=verdict.message, data=outcome))
            if FlowRunContext.get()
            else outcome
        )


def name_run() -> str:
    """The name that a flow run was given, or a readable one: when it was due, and its feeds, "2026-11-21 03:30 guide.xml.gz +2"."""
    if this_run.name and not _is_generated(this_run.name):
        return this_run.name
    parameters = this_run.parameters
    feeds: Sequence[str] = parameters.get("feeds") or []
    names = [Path(source_of(feed).rstrip("/")).name for feed in feeds]
    return f"{this_run.scheduled_start_time.astimezone():%Y-%m-%d %H:%M} {names[0] if names else 'no feed'}{f' +{len(names) - 1}' if len(names) > 1 else ''}"


def _is_generated(name: str) -> bool:
    """Whether Prefect drew the name by lot: two words of the lists that it draws from, "adamant-otter"."""
    words = name.split("-")
    return len(words) == 2 and all(any(word in about.get("words", ()) for about in NAMES.values()) for word in words)


@contextmanager
def open_night(home: str, feeds: Sequence[str], settings: Settings) -> Iterator[Night]:
    """Holds the home, opens the MLflow run of this flow run (or resumes it), and ends it as the flow ends.

    A night that meets another one in its home waits for it: the lock is the home's, so nights of other homes run beside it.

    Raises:
        HomeLocked: Another process still writes to the home after WAIT_SECONDS.
    """
    workspace = Workspace(home)
    what = f"nightly run of {len(feeds)} feed{'s' if len(feeds) != 1 else ''}"
    with workspace.writing(what, wait_seconds=WAIT_SECONDS, tell=get_run_logger().warning):
        tracking = Tracking(workspace.home)
        flow_run_id = this_run.id or str(uuid.uuid4())
        told = {"feeds": [source_of(feed) for feed in feeds], **asdict(settings)}
        run = tracking.start_run(flow_run_id, this_run.name or "nightly", _links(flow_run_id), told)
        get_run_logger().info("MLflow: %s", tracking.where(run))
        for silent in tracking.close_silent(run):
            get_run_logger().warning(
                "MLflow run %s was left RUNNING by a run of this home that died; it is KILLED now", silent
            )
        try:
            yield Night(workspace, tracking, run)
            prune(workspace, settings.publish.keep)
        except BaseException as error:
            tracking.set_tags(run, {"guidespace.error": f"{type(error).__name__}: {error}"[:500]})
            tracking.end_run(run, "FAILED" if isinstance(error, Exception) else "KILLED")
            raise
        finally:
            if FlowRunContext.get():
                emit_event(LEFT, resource={"prefect.resource.id": f"prefect.flow-run.{flow_run_id}"})
        tracking.end_run(run)


def close_crashed(flow: Flow[Any, Any], flow_run: FlowRun, state: State) -> None:
    """Hook: ends the MLflow run of a flow run whose process died or was cancelled."""
    home = Path(str(flow_run.parameters.get("home", "guidespace-home"))).expanduser()
    if (home / "home.json").exists():
        Tracking(home).close_orphans(str(flow_run.id))


def _links(flow_run_id: str) -> dict[str, str]:
    """Tags that lead from MLflow back to Prefect."""
    page = PREFECT_UI_URL.value()
    return {"prefect.flow_run_url": f"{page}/runs/flow-run/{flow_run_id}"} if page else {}
