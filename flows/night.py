"""What surrounds a nightly run: the writer's lock, the MLflow run linked both ways with Prefect, and the pointer to what came out."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from prefect import get_run_logger
from prefect.artifacts import create_link_artifact, create_markdown_artifact
from prefect.client.schemas.objects import FlowRun, State
from prefect.context import FlowRunContext
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
    """Readable name of a flow run: the night and the first feeds, "2026-11-21 guide.xml.gz +2"."""
    parameters = this_run.parameters
    feeds: Sequence[str] = parameters.get("feeds") or []
    names = [Path(source_of(feed).rstrip("/")).name for feed in feeds]
    return f"{this_run.scheduled_start_time:%Y-%m-%d} {names[0] if names else 'no feed'}{f' +{len(names) - 1}' if len(names) > 1 else ''}"


@contextmanager
def open_night(home: str, feeds: Sequence[str], settings: Settings) -> Iterator[Night]:
    """Holds the home, opens the MLflow run of this flow run (or resumes it), and ends it as the flow ends.

    Raises:
        HomeLocked: Another process writes to the home.
    """
    workspace = Workspace(home)
    with workspace.writing(f"nightly run of {len(feeds)} feed{'s' if len(feeds) != 1 else ''}"):
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
