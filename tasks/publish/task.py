"""Defines the Prefect tasks that publish a Layout, a Page and a Model, and write the report of a run."""

import io
import json
import shutil
from collections import Counter
from datetime import datetime
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from prefect import get_run_logger, task
from prefect.artifacts import create_table_artifact
from prefect.context import TaskRunContext
from pyarrow.csv import WriteOptions, write_csv

from storage.arrays import array_writer, open_array, row_blocks
from storage.artifacts import Corpus, Layout, LinearModel, Model, Page, TitleEncoderFiles, Vectors
from storage.formats.clustering import read_clusters
from storage.formats.corpus import open_corpus
from storage.formats.linear_part import FILE as LINEAR
from storage.formats.model import (
    CHANNEL_VOTES,
    RARE_CATEGORIES,
    VOTES,
    read_spellings,
    write_spellings,
    write_votes,
)
from storage.formats.programme_kinds import copy_kinds, read_title_kinds
from storage.home.workspace import Workspace
from storage.stages import Stage
from storage.tracking import Tracking
from tasks.encoder.title_encoder import TitleEncoder
from tasks.pool import MAX_HELPER_TITLES, helper_submit, open_pool
from tasks.predictor.linear_part import LinearPart
from tasks.predictor.prediction import corpus_support
from tasks.publish.inputs import LayoutInputs, PageInputs, ReportInputs
from tasks.publish.map.places import write_layout
from tasks.publish.nights.record import record_night
from tasks.publish.provenance import render_artifacts, trace_inputs
from tasks.publish.report import RunReport, Verdict, main_metrics, render_report
from tasks.scoring.channels import channel_votes
from tasks.scoring.confidence import held_out_votes
from tasks.scoring.protocols import CorpusTitles
from tasks.search.search import COLUMNS, OPTIONAL_COLUMNS, SIMILARITY_ARRAYS

LAYOUT = Stage(Layout, __file__, "layout")
PAGE = Stage(Page, __file__, "draw")
MODEL = Stage(Model, __file__, "pack")
MAX_DROPPED_SHOWN = 200  # maximum number of dropped categories that Prefect shows; MLflow has all of them


@task(**LAYOUT.options)
def compute_layout(home: str, inputs: LayoutInputs, previous: Layout | None) -> Layout:
    """Publishes a Layout: the positions of titles on the map, and the reasons why nearest titles are similar.

    The computation starts from the positions of the previous Layout, if there is one.
    """
    folder_of = Workspace(home).folder
    with LAYOUT.publish(home, inputs) as draft:
        title_count = inputs.corpus.counts["titles"]
        # The with statement ends the process of the pool.
        with open_pool("processes", int(title_count > MAX_HELPER_TITLES)) as submit_to_pool:
            submit = submit_to_pool if title_count > MAX_HELPER_TITLES else helper_submit(title_count)
            count = submit(
                write_layout,
                corpus=folder_of(inputs.corpus),
                encoder=folder_of(inputs.encoder),
                vectors=folder_of(inputs.vectors),
                nearest=folder_of(inputs.nearest),
                neighbours=inputs.neighbours,
                seed=inputs.seed,
                previous=folder_of(previous) if previous else None,
                folder=draft.folder,
            )
            draft.counts["titles"] = count.result()
    return draft.artifact


@task(**PAGE.options)
def draw(home: str, inputs: PageInputs, previous: Page | None, at: datetime) -> Page:
    """Publishes a Page: map.html and plots.html. Metrics of earlier runs are read from the previous Page."""
    from tasks.publish.drawing import write_page  # imports plotly

    with PAGE.publish(home, inputs) as draft:
        submit = helper_submit(inputs.corpus.counts["titles"])
        draft.counts |= submit(write_page, home, inputs, previous, at, draft.folder).result()
    get_run_logger().info("map of %(titles)d titles in %(clusters)d clusters", draft.counts)
    return draft.artifact


@task(**MODEL.options)
def pack(
    home: str, corpus: Corpus, encoder: TitleEncoderFiles, vectors: Vectors, linear: LinearModel
) -> Model:
    """Publishes a Model, the folder of the served model.

    It contains the title encoder, the similarity vectors, a table of the titles, the linear part of the
    predictor of categories, and the votes on held-out titles (their nearest training titles, and the support
    of each label), from which the confidence of predictions is calibrated.
    """
    folder_of = Workspace(home).folder
    kinds = read_title_kinds(folder_of(corpus))
    columns = {*COLUMNS, *OPTIONAL_COLUMNS, RARE_CATEGORIES, "split", "language"} - {*kinds.column_names}
    titles = pq.read_table(folder_of(corpus) / "titles.parquet", columns=sorted(columns))
    is_in_model = pc.not_equal(titles["split"], "placeholder").to_numpy()  # pyright: ignore[reportAttributeAccessIssue]
    rows = np.flatnonzero(is_in_model)
    with MODEL.publish(home, corpus, encoder, vectors, linear) as draft:
        shutil.copyfile(folder_of(linear) / LINEAR, draft.folder / LINEAR)
        for name in ("tokens.parquet", "rows.safetensors", "lexicon.json"):
            shutil.copyfile(folder_of(encoder) / name, draft.folder / name)
        for column in kinds.column_names:
            titles = titles.append_column(column, kinds[column])
        pq.write_table(titles.filter(is_in_model), draft.folder / "titles.parquet", compression="zstd")
        copy_kinds(folder_of(corpus), draft.folder, rows)
        corpus_files, title_encoder = open_corpus(folder_of(corpus)), TitleEncoder.open(folder_of(encoder))
        blocks = [rows[block] for block in row_blocks(len(rows))]
        for name in SIMILARITY_ARRAYS:
            array = open_array(folder_of(vectors), name)
            with array_writer(draft.folder, name, array.dtype, array.shape[1:]) as add:
                for block in blocks:
                    add(array[block])
        with array_writer(draft.folder, "dense", np.float16, corpus_files.sentences.shape[1:]) as add:
            for block in blocks:
                sentences, descriptions = corpus_files.sentences[block], corpus_files.descriptions[block]
                add(title_encoder.bag.sentence_features(sentences, descriptions).astype(np.float16))
        linear_part = LinearPart.open(folder_of(linear))
        assert linear_part is not None  # the stage linear writes the file
        points = np.asarray(open_array(folder_of(vectors), "full"))
        support = partial(corpus_support, linear_part, corpus_files, form="title_context")
        model_row = np.append(np.cumsum(is_in_model) - 1, -1)  # row in the Model by title; -1 at index -1
        votes_by_name = {
            VOTES: held_out_votes(CorpusTitles.from_corpus(corpus_files), points, support),
            CHANNEL_VOTES: channel_votes(corpus_files, title_encoder, linear_part, points),
        }
        for name, votes in votes_by_name.items():
            model_rows = {"titles": model_row[votes.titles], "neighbours": model_row[votes.neighbours]}
            write_votes(draft.folder, votes._replace(**model_rows), name)
        write_spellings(draft.folder, read_spellings(folder_of(corpus)))
        draft.counts |= {"titles": len(rows)}
    return draft.artifact


@task(name="report", task_run_name="report", persist_result=False)
def report(home: str, inputs: ReportInputs, run: str) -> RunReport:
    """Logs a nightly run to MLflow, returns its report, and updates nights.html, the page of recent runs.

    Args:
        home: Folder of the home.
        inputs: Artifacts of the run and the decision about its model.
        run: Id of the MLflow run to which metrics, scores, drift, training history, feeds, map, plots and
            dropped categories are logged.
    """
    workspace, tracking, verdict = Workspace(home), Tracking(home), inputs.verdict
    folder = workspace.folder
    scores = json.loads((folder(inputs.scores) / "scores.json").read_text(encoding="utf-8"))
    feeds = pq.read_table(folder(inputs.guide) / "feeds.parquet").to_pylist()
    dropped_categories = pq.read_table(folder(inputs.corpus) / "dropped_categories.parquet")
    figures = main_metrics(
        scores,
        verdict,
        title_count=inputs.page.counts["titles"],
        programme_count=inputs.guide.counts["programmes"],
    )
    tracking.log_feeds(run, feeds)
    snapshot = tracking.log_snapshot(run, inputs.guide.digest, folder(inputs.guide), inputs.guide.counts)
    tracking.log_figures(run, figures, verdict.logged_model, snapshot)
    tracking.log_scores(run, scores)
    reasons = Counter(dropped_categories["reason"].to_pylist()).most_common()
    _log_counts(tracking, run, inputs, dropped_categories, reasons)
    if "train/loss" not in tracking.mlflow.client.get_run(run).data.metrics:  # the Checkpoint was cached
        history = enumerate(workspace.details(inputs.checkpoint)["history"], 1)
        steps = [
            (epoch, {f"train/{name}": value for name, value in metrics.items()}) for epoch, metrics in history
        ]
        tracking.log_steps(run, steps)
    page = folder(inputs.page)
    for file in (page / "map.html", page / "plots.html", folder(inputs.scores) / "scores.json"):
        tracking.log_file(run, file)
    tags = {"model_version": verdict.version, "champion": verdict.champion, "gate": verdict.reason}
    tags |= {"model": inputs.model.digest}
    tracking.set_tags(run, {f"guidespace.{name}": value for name, value in tags.items()})
    record_night(home, run, inputs, feeds, scores)
    if TaskRunContext.get():
        _show_dropped(dropped_categories, reasons)
    encoder_choice = workspace.details(inputs.corpus)["encoder_choice"]
    text = render_report(
        guide=inputs.guide,
        feeds=feeds,
        scores=scores,
        verdict=verdict,
        figures=figures,
        previous_figures=inputs.previous_night.figures,
        anomalies=inputs.anomalies,
        clusters=read_clusters(folder(inputs.clustering)),
        summary=[*_links(tracking, run, page / "map.html", verdict), encoder_choice],
    )
    tracking.log_text(run, text, "report.md")
    records = trace_inputs(workspace, (inputs.page, inputs.model))
    artifacts_page = render_artifacts(records, "Artifacts of the night", verdict.model_uri)
    tracking.log_text(run, artifacts_page, "artifacts.html")
    tracking.describe(run, text)
    link = tracking.run_location(run)
    return RunReport(markdown=text, figures=figures, link=link if link.startswith("http") else "")


def _log_counts(
    tracking: Tracking, run: str, inputs: ReportInputs, dropped: pa.Table, reasons: list[tuple[str, int]]
) -> None:
    """Logs the counts of artifacts, the number of dropped categories by reason, and the dropped categories.

    ``dropped`` has a row per dropped category, and ``reasons`` are pairs of a reason and its number of rows.
    """
    artifacts = {"guide": inputs.guide, "corpus": inputs.corpus, "clustering": inputs.clustering}
    counts = {
        f"counts/{kind}/{name}": count
        for kind, artifact in artifacts.items()
        for name, count in artifact.counts.items()
    }
    counts |= {f"dropped_categories/{reason}": count for reason, count in reasons}
    tracking.log_progress(run, 0, counts)
    write_csv(dropped, text := io.BytesIO(), WriteOptions(quoting_style="needed"))
    tracking.log_text(run, text.getvalue().decode(), "dropped_categories.csv")


def _show_dropped(dropped: pa.Table, reasons: list[tuple[str, int]]) -> None:
    """Shows the table of dropped categories on the page of the Prefect flow run."""
    by_reason = ", ".join(f"{count:,} {reason}" for reason, count in reasons)
    description = f"{len(dropped):,} categories dropped{': ' if reasons else ''}{by_reason}"
    rows = dropped.slice(0, MAX_DROPPED_SHOWN).to_pylist()
    create_table_artifact(table=rows, key="dropped-categories", description=description)  # pyright: ignore[reportUnusedCoroutine]


def _links(tracking: Tracking, run: str, map_file: Path, verdict: Verdict) -> list[str]:
    """Returns lines with the locations of the map, the MLflow run, the model and the page of artifacts."""
    run_location = tracking.run_location(run)
    if not run_location.startswith("http"):
        return [f"Map: `{map_file}`", f"MLflow: `{run_location}`", f"Model: `{verdict.model_uri}`", ""]
    return [
        f"Map: [map.html]({tracking.run_location(run, 'map.html')})",
        f"MLflow: [run {run}]({run_location})",
        f"Model: `{verdict.model_uri}`",
        f"Artifacts: [artifacts.html]({tracking.run_location(run, 'artifacts.html')})",
    ]
