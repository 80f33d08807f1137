"""Stage publish: everything to Layout, Page and Model; the report."""

import io
import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from prefect import get_run_logger, task
from prefect.artifacts import create_table_artifact
from prefect.context import TaskRunContext
from pyarrow.csv import WriteOptions, write_csv

from storage.arrays import array_writer, open_array, row_blocks
from storage.artifacts import (
    Checkpoint,
    Clustering,
    Corpus,
    Guide,
    Layout,
    Model,
    NearestTitles,
    Page,
    Scores,
    TitleEncoderFiles,
    Vectors,
)
from storage.formats.clustering import read_clusters
from storage.formats.corpus import open_corpus
from storage.formats.model import Votes, read_spellings, write_spellings, write_votes
from storage.stages import Stage
from storage.tracking import Tracking
from storage.workspace import Workspace
from tasks.encoder.title_encoder import TitleEncoder
from tasks.pool import SHARED, beside, open_pool
from tasks.publish.drawing import write_page
from tasks.publish.map.places import write_layout
from tasks.publish.nights.record import record_night
from tasks.publish.provenance import render_artifacts, trace
from tasks.publish.report import Report, Verdict, headline, report_markdown
from tasks.publish.settings import PublishSettings
from tasks.scoring.confidence import held_out_votes
from tasks.scoring.protocols import Titles
from tasks.search.search import COLUMNS, FURTHER, SIMILARITY

LAYOUT = Stage(Layout, __file__, "layout")
PAGE = Stage(Page, __file__, "draw")
MODEL = Stage(Model, __file__, "pack")
DROPPED_SHOWN = 200  # dropped categories in the table on the flow run's page; MLflow has them all


@task(**LAYOUT.options)
def lay_out(
    home: str,
    corpus: Corpus,
    encoder: TitleEncoderFiles,
    vectors: Vectors,
    nearest: NearestTitles,
    neighbours: int,
    seed: int,
    previous: Layout | None,
) -> Layout:
    """Publishes where titles stand on the map, from their previous places on, and why they are near."""
    folder = Workspace(home).folder
    made_of = corpus, encoder, vectors, nearest
    with LAYOUT.publish(home, *made_of, neighbours, seed) as draft:
        before = folder(previous) if previous else None
        given = *map(folder, made_of), neighbours, seed, before, draft.folder
        titles = corpus.counts["titles"]
        with open_pool("processes", int(titles > SHARED)) as own:  # which ends with it
            submit = own if titles > SHARED else beside(titles)
            draft.counts["titles"] = submit(write_layout, *given).result()
    return draft.artifact


@task(**PAGE.options)
def draw(
    home: str,
    guide: Guide,
    corpus: Corpus,
    checkpoint: Checkpoint,
    vectors: Vectors,
    nearest: NearestTitles,
    layout: Layout,
    clustering: Clustering,
    scores: Scores,
    settings: PublishSettings,
    previous: Page | None,
    at: datetime,
) -> Page:
    """Publishes map.html and plots.html, which continue the history of the previous page."""
    made_of = guide, corpus, checkpoint, vectors, nearest, layout, clustering, scores, settings
    with PAGE.publish(home, *made_of) as draft:
        given = home, *made_of, previous, at, draft.folder
        draft.counts |= beside(corpus.counts["titles"])(write_page, *given).result()
    get_run_logger().info("map of %(titles)d titles in %(clusters)d clusters", draft.counts)
    return draft.artifact


@task(**MODEL.options)
def pack(home: str, corpus: Corpus, encoder: TitleEncoderFiles, vectors: Vectors) -> Model:
    """Publishes the folder of the served model: encoder, similarity vectors, what is known of each title, and
    the votes on held-out titles, by which predictions are calibrated.
    """
    folder = Workspace(home).folder
    columns = [*COLUMNS, *FURTHER, "split", "language"]
    titles = pq.read_table(folder(corpus) / "titles.parquet", columns=columns)
    shown = pc.not_equal(titles["split"], "placeholder").to_numpy()  # pyright: ignore[reportAttributeAccessIssue]
    with MODEL.publish(home, corpus, encoder, vectors) as draft:
        for name in ("tokens.parquet", "rows.safetensors", "lexicon.json"):
            shutil.copyfile(folder(encoder) / name, draft.folder / name)
        pq.write_table(titles.filter(shown), draft.folder / "titles.parquet", compression="zstd")
        learned, bag = open_corpus(folder(corpus)), TitleEncoder.open(folder(encoder)).bag
        rows = np.flatnonzero(shown)
        blocks = [rows[own] for own in row_blocks(len(rows))]
        for name in SIMILARITY:
            array = open_array(folder(vectors), name)
            with array_writer(draft.folder, name, array.dtype, array.shape[1:]) as add:
                for own in blocks:
                    add(array[own])
        with array_writer(draft.folder, "dense", np.float16, learned.sentences.shape[1:]) as add:
            for own in blocks:
                add(bag.dense(learned.sentences[own], learned.descriptions[own]).astype(np.float16))
        votes = held_out_votes(Titles.of(learned), np.asarray(open_array(folder(vectors), "full")))
        row = np.append(np.cumsum(shown) - 1, -1)  # in titles.parquet; of a neighbour that is absent, -1
        write_votes(draft.folder, Votes(row[votes.titles], row[votes.neighbours], votes.cosines))
        write_spellings(draft.folder, read_spellings(folder(corpus)))
        draft.counts |= {"titles": int(shown.sum())}
    return draft.artifact


@task(name="report", task_run_name="report", persist_result=False)
def report(
    home: str,
    guide: Guide,
    corpus: Corpus,
    clustering: Clustering,
    checkpoint: Checkpoint,
    scores: Scores,
    page: Page,
    model: Model,
    verdict: Verdict,
    anomalies: Sequence[str],
    run: str,
    before: Mapping[str, float] | None = None,
    last_model: str = "",
) -> Report:
    """Logs to MLflow (figures, scores, drift, history, feeds, map, plots, categories), writes the report and
    the home's nights.html.

    ``anomalies`` are what ``check`` found, ``before`` the headline figures of the run before, ``last_model``
    the folder of its model (empty where there is none).
    """
    workspace, tracking = Workspace(home), Tracking(home)
    folder = workspace.folder
    document = json.loads((folder(scores) / "scores.json").read_text(encoding="utf-8"))
    feeds = pq.read_table(folder(guide) / "feeds.parquet").to_pylist()
    dropped = pq.read_table(folder(corpus) / "dropped_categories.parquet")
    reasons = Counter(dropped["reason"].to_pylist()).most_common()
    figures = headline(document, verdict, page.counts["titles"], guide.counts["programmes"])
    tracking.log_feeds(run, feeds)
    snapshot = tracking.log_snapshot(run, guide.digest, folder(guide), guide.counts)
    tracking.log_figures(run, figures, verdict.logged_model, snapshot)
    tracking.log_scores(run, document)
    made = {"guide": guide, "corpus": corpus, "clustering": clustering}
    counts = {f"counts/{kind}/{name}": n for kind, own in made.items() for name, n in own.counts.items()}
    counts |= {f"dropped_categories/{reason}": count for reason, count in reasons}
    tracking.log_progress(run, 0, counts)
    if "train/loss" not in tracking.client.get_run(run).data.metrics:  # a cached training has logged nothing
        history = enumerate(workspace.details(checkpoint)["history"], 1)
        steps = [(epoch, {f"train/{name}": n for name, n in values.items()}) for epoch, values in history]
        tracking.log_steps(run, steps)
    for file in (folder(page) / "map.html", folder(page) / "plots.html", folder(scores) / "scores.json"):
        tracking.log_file(run, file)
    write_csv(dropped, text := io.BytesIO(), WriteOptions(quoting_style="needed"))
    tracking.log_text(run, text.getvalue().decode(), "dropped_categories.csv")
    about = {"model_version": verdict.version, "champion": verdict.champion, "gate": verdict.reason}
    tags = {f"guidespace.{name}": value for name, value in (about | {"model": model.digest}).items()}
    tracking.set_tags(run, tags)
    record_night(home, run, guide, corpus, model, verdict, feeds, document, last_model)
    if TaskRunContext.get():
        by_reason = ", ".join(f"{count:,} {reason}" for reason, count in reasons)
        what = f"{len(dropped):,} categories dropped{': ' if reasons else ''}{by_reason}"
        rows = dropped.slice(0, DROPPED_SHOWN).to_pylist()
        create_table_artifact(table=rows, key="dropped-categories", description=what)  # pyright: ignore[reportUnusedCoroutine]
    where, shown = tracking.where(run), tracking.where(run, "map.html")
    registered = f"models:/{verdict.name}/{verdict.version}"
    linked = where.startswith("http")
    places = [
        f"Map: [map.html]({shown})" if linked else f"Map: `{folder(page) / 'map.html'}`",
        f"MLflow: [run {run}]({where})" if linked else f"MLflow: `{where}`",
        f"Model: `{registered}`",
        f"Artifacts: [artifacts.html]({tracking.where(run, 'artifacts.html')})" if linked else "",
    ]
    clusters, past = read_clusters(folder(clustering)), before or {}
    text = report_markdown(guide, feeds, document, verdict, figures, past, anomalies, clusters, places)
    tracking.log_text(run, text, "report.md")
    records = trace(workspace, (page, model))
    tracking.log_text(run, render_artifacts(records, "Artifacts of the night", registered), "artifacts.html")
    tracking.describe(run, text)
    return Report(markdown=text, figures=figures, link=where if linked else "")
