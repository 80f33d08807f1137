"""Logs the drift and the model card of a nightly run, and updates nights.html, the page of recent runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from storage.formats.corpus import open_corpus
from storage.home.workspace import Workspace
from storage.json_file import write_text
from storage.tracking import Registry, Tracking
from storage.tracking.nights import read_nights
from tasks.publish.inputs import ReportInputs
from tasks.publish.nights.card import model_card
from tasks.publish.nights.drift import measure_drift, oov_share
from tasks.publish.nights.page import render_nights

PAGE = "nights.html"  # file in the home with the last 30 nightly runs


def record_night(
    home: str,
    run: str,
    inputs: ReportInputs,
    feeds: Sequence[Mapping[str, Any]],
    scores: Mapping[str, Any],
) -> None:
    """Logs drift metrics and the model card of a run to MLflow, and writes nights.html with recent runs.

    Args:
        home: Folder of the home.
        run: Id of the MLflow run.
        inputs: Artifacts of the run, the decision about its model, and the model of the previous run.
        feeds: Rows of feeds.parquet.
        scores: Content of scores.json.
    """
    workspace, tracking = Workspace(home), Tracking(home)
    guide, corpus, verdict = inputs.guide, inputs.corpus, inputs.verdict
    model_folder, previous_model = workspace.folder(inputs.model), inputs.previous_night.model_folder
    drift = measure_drift(Path(previous_model), model_folder) if previous_model else {}
    drift["oov_share"] = oov_share(open_corpus(workspace.folder(corpus)))
    tracking.log_progress(run, 0, {f"drift/{name}": value for name, value in drift.items()})
    programmes = pq.read_table(workspace.folder(guide) / "programmes.parquet", columns=["start"])
    starts = pc.min_max(programmes["start"])  # pyright: ignore[reportAttributeAccessIssue]
    languages = pq.read_table(model_folder / "titles.parquet", columns=["language"])["language"].to_pylist()
    card = model_card(
        guide,
        corpus,
        feeds=feeds,
        span=(starts["min"].as_py(), starts["max"].as_py()),
        languages=languages,
        scores=scores,
        oov_share=drift["oov_share"],
    )
    tracking.log_text(run, card, "model_card.md")
    Registry(home, name=verdict.name).add_card(verdict.version, card)
    page = workspace.home / PAGE
    write_text(page, render_nights(read_nights(tracking.mlflow), f"Nights of {workspace.home.name}"))
    tracking.log_file(run, page)
