"""Defines a run in progress (``NightlyRun``) and the results of flows that train models."""

import datetime
from dataclasses import asdict, dataclass
from typing import cast

from prefect.artifacts import create_link_artifact, create_markdown_artifact
from prefect.context import FlowRunContext
from prefect.states import Completed

from storage.artifacts import Corpus, Model, Page, Scores
from storage.home.files import mark_used
from storage.home.latest import last_instant, write_latest
from storage.home.workspace import Workspace, newest_first
from storage.tracking import Tracking
from storage.tracking.nights import read_nights
from storage.tracking.runs import FIGURES_PREFIX
from tasks.publish.inputs import PreviousNight
from tasks.publish.report import RunReport, Verdict

MAX_NIGHTS = 1_000  # number of newest nights among which a back-filled run looks for its previous night


@dataclass(frozen=True, kw_only=True)
class NightlyResult:
    """Locations of the results of a nightly run, and the decision about its model."""

    map: str  # path of the HTML map
    scores: str  # path of scores.json
    run: str  # MLflow run id
    where: str  # URL of the MLflow run, or the command that opens it
    registered_model: str  # name of the registered model; models:/NAME@champion is its champion
    version: str  # version of the registered model
    champion: bool  # whether this version is the champion
    reason: str  # why the gate promoted the version or not


@dataclass(frozen=True, kw_only=True)
class ComparisonResult:
    """Result of a comparison of optimizers, or of an ablation."""

    table: str  # Markdown table of the results
    run: str  # id of the parent MLflow run
    where: str  # URL of the MLflow run, or the command that opens it


@dataclass(frozen=True)
class NightlyRun:
    """A nightly run in progress: its home, its MLflow run and the instant of the guide that it uses."""

    workspace: Workspace
    tracking: Tracking
    run: str  # MLflow run id
    at: datetime.datetime  # instant of the guide that the run uses
    is_backfill: bool  # whether the run is for a past date; its model is then never promoted

    def read_previous(self) -> PreviousNight:
        """Returns the main metrics and the model folder of the previous night; empty if there is none.

        The previous night is the run with the newest guide that is older than the guide of this run.
        """
        nights = read_nights(self.tracking.mlflow, MAX_NIGHTS if self.is_backfill else 2)
        earlier_nights = [night for night in nights if night.at < self.at and night.run != self.run]
        if not earlier_nights:
            return PreviousNight()
        previous_night, prefix = earlier_nights[-1], f"{FIGURES_PREFIX}/"
        figures = {
            name.removeprefix(prefix): value
            for name, value in previous_night.metrics.items()
            if name.startswith(prefix)
        }
        models = newest_first(self.workspace, Model)
        folders = (self.workspace.folder(model) for model in models if model.digest == previous_night.model)
        if folder := next(folders, None):
            mark_used(folder)
        return PreviousNight(figures=figures, model_folder=str(folder or ""))

    def result(
        self, corpus: Corpus, scores: Scores, page: Page, model: Model, verdict: Verdict, report: RunReport
    ) -> NightlyResult:
        """Publishes the results of the run in Prefect's UI and in latest.json of the home, and returns them.

        The Prefect artifacts are created here and not in tasks, because the page of a flow run lists only
        artifacts of the flow itself. In a flow run, this method returns a state whose message is the decision
        of the gate; Prefect returns the results in this state to the caller of the flow.
        """
        in_flow_run = FlowRunContext.get() is not None
        if in_flow_run:
            create_markdown_artifact(report.markdown, key="nightly-report", description=verdict.message)
            if report.link:
                description = "Figures, parameters, plots, map and model of this run"
                create_link_artifact(
                    report.link, link_text="MLflow run", key="mlflow-run", description=description
                )
        folder = self.workspace.folder
        result = NightlyResult(
            map=str(folder(page) / "map.html"),
            scores=str(folder(scores) / "scores.json"),
            run=self.run,
            where=self.tracking.run_location(self.run),
            registered_model=verdict.name,
            version=verdict.version,
            champion=verdict.champion,
            reason=verdict.reason,
        )
        latest_details = {"model": folder(model), "corpus": folder(corpus), "as_of": format_instant(self.at)}
        if not self.is_backfill or last_instant(self.workspace.home) <= latest_details["as_of"]:
            write_latest(self.workspace.home, {**asdict(result), **latest_details})
        if in_flow_run:
            return cast(NightlyResult, Completed(message=verdict.message, data=result))
        return result


def format_instant(moment: datetime.datetime) -> str:
    """Formats an instant as ISO 8601 in UTC, for tags and latest.json. The texts sort chronologically."""
    return moment.astimezone(datetime.UTC).isoformat(timespec="seconds")
