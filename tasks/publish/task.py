"""Stage publish: everything to Page and Model; the gate; the report. What people see of a run is made here."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from prefect import get_run_logger, task
from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact
from prefect.context import TaskRunContext

from storage.arrays import open_array
from storage.artifacts import Checkpoint, Clustering, Corpus, Guide, Lexicon, Model, Page, Scores, Vectors
from storage.catalogue.titles import open_airings
from storage.readings import read_readings
from storage.stages import Stage
from storage.tracking import Registry, Tracking
from storage.workspace import Workspace
from storage.yesterday import newest_other
from tasks.augment.lexicon import Lexicon as Opened
from tasks.cluster.partition import Density
from tasks.preprocess.corpus import open_corpus
from tasks.publish.content import map_content
from tasks.publish.dropped import SHOWN, dropped_by_reason, dropped_csv, dropped_summary, read_dropped
from tasks.publish.figures import all_nights, draw_figures, write_nights
from tasks.publish.judge import NotComparable, decide_between, lineage
from tasks.publish.map import MOST_TIMES, render_map
from tasks.publish.plots import write_plots
from tasks.publish.report import describe_scores, facts_of, report_markdown
from tasks.publish.settings import PublishSettings
from tasks.publish.verdict import Verdict

PAGE = Stage(Page, __file__, "draw")
MODEL = Stage(Model, __file__, "pack")
PLACES = "places.parquet"  # where the titles stand: the start of the next night
QUALITY = "quality"  # name of the score that the gate remembers of a promoted model


@task(**PAGE.options)
def draw(
    home: str,
    guide: Guide,
    corpus: Corpus,
    checkpoint: Checkpoint,
    lexicon: Lexicon,
    vectors: Vectors,
    clustering: Clustering,
    scores: Scores,
    settings: PublishSettings,
) -> Page:
    """Publishes map.html and plots.html."""
    workspace = Workspace(home)
    titles = pq.read_table(workspace.folder(corpus) / "titles.parquet")
    matrix = np.asarray(open_array(workspace.folder(vectors), "vectors"))
    document = json.loads((workspace.folder(scores) / "scores.json").read_text())
    made_of = guide, corpus, checkpoint, lexicon, vectors, clustering, scores, settings
    yesterday = newest_other(workspace, Page, PAGE.key(*made_of))
    before = workspace.folder(yesterday) if yesterday else None
    stood = pq.read_table(before / PLACES) if before and (before / PLACES).exists() else None
    opened = Opened.open(workspace.folder(lexicon))
    nights = all_nights(before, datetime.now(UTC), workspace.details(checkpoint)["history"], document)
    queries = pq.read_table(workspace.folder(scores) / "queries.parquet")
    near = workspace.details(clustering)["density"]
    with PAGE.publish(home, *made_of) as draft:
        variants = workspace.folder(corpus) / "variants.parquet"
        with open_airings(workspace.folder(guide), variants, draft.folder) as airings:
            times = airings.times(0, len(titles), MOST_TIMES)
        facts, clusters = facts_of(titles, document), workspace.folder(clustering)
        content, places, shown = map_content(titles, matrix, opened, clusters, facts, settings, times, stood)
        density, learned = Density(**near) if near else None, open_corpus(workspace.folder(corpus))
        figures = draw_figures(learned, titles, matrix, queries, content, shown, nights, density)
        (draft.folder / "map.html").write_text(render_map(content), encoding="utf-8")
        pq.write_table(places, draft.folder / PLACES)
        write_plots(draft.folder, figures)
        write_nights(draft.folder, nights)
        draft.counts |= {"titles": len(content.titles), "clusters": len(content.cluster_names)}
    get_run_logger().info("map of %(titles)d titles in %(clusters)d clusters", draft.counts)
    return draft.artifact


@task(**MODEL.options)
def pack(home: str, corpus: Corpus, lexicon: Lexicon, vectors: Vectors) -> Model:
    """Publishes the folder that the served model carries: the lexicon, title vectors and what is shown of each title."""
    workspace = Workspace(home)
    titles = pq.read_table(workspace.folder(corpus) / "titles.parquet", columns=["title", "raw_title", "show_key", "labels", "channels", "split"])
    shown = pc.not_equal(titles["split"], "placeholder")  # pyright: ignore[reportAttributeAccessIssue]
    rows = np.flatnonzero(shown.combine_chunks().to_numpy(zero_copy_only=False))
    with MODEL.publish(home, corpus, lexicon, vectors) as draft:
        for name in ("tokens.parquet", "rows.safetensors", "lexicon.json"):
            shutil.copyfile(workspace.folder(lexicon) / name, draft.folder / name)
        pq.write_table(titles.filter(shown), draft.folder / "titles.parquet", compression="zstd")
        np.save(draft.folder / "vectors.npy", np.asarray(open_array(workspace.folder(vectors), "vectors"))[rows])
        draft.counts |= {"titles": len(rows)}
    return draft.artifact


@task(name="promote", task_run_name="promote", persist_result=False)
def promote(home: str, guide: Guide, corpus: Corpus, model: Model, scores: Scores, settings: PublishSettings, run: str) -> Verdict:
    """Registers the model as challenger and, if the gate says so, makes it the champion. Not cached; the same model changes nothing."""
    workspace, registry = Workspace(home), Registry(home)
    folder = workspace.folder(model)
    sources = pq.read_table(workspace.folder(guide) / "feeds.parquet", columns=["source"])["source"].to_pylist()
    line = lineage(str(workspace.details(corpus)["salt"]), sources)
    champion = registry.champion()
    same = champion is not None and champion.digest == model.digest
    example = pq.read_table(folder / "titles.parquet", columns=["raw_title"])["raw_title"][0].as_py()
    version = registry.register(run, folder, model.digest, example_title=example, lineage=line)
    remembered = [past.scores[QUALITY] for past in reversed(registry.promoted()) if past.lineage == line and QUALITY in past.scores]
    try:
        decision = decide_between(
            workspace.folder(corpus), workspace.folder(scores), champion.folder if champion else None,
            same_model=same, best_of_last=remembered, seed=settings.seed, resamples=settings.resamples,
        )  # fmt: skip
        move, reason, quality = decision.promote, decision.reason, decision.quality
    except NotComparable as error:
        move, reason, quality = True, f"promoted without a comparison: {error}", None
    if move:
        flat = describe_scores(json.loads((workspace.folder(scores) / "scores.json").read_text()))
        registry.promote(version, reason, at=datetime.now(UTC), scores=flat | ({QUALITY: quality} if quality is not None else {}))
    get_run_logger().info("version %s %s: %s", version, "is champion" if move or same else "is not promoted", reason)
    return Verdict(version=version, champion=move or same, reason=reason)


@task(name="report", task_run_name="report", persist_result=False)
def report(home: str, guide: Guide, corpus: Corpus, clustering: Clustering, checkpoint: Checkpoint, scores: Scores, page: Page, model: Model, verdict: Verdict, run: str) -> None:
    """Tells MLflow (scores, history, feeds, map, plots, dropped categories) and Prefect (a report, a table of the latter, the way to MLflow) what came out."""
    workspace, tracking = Workspace(home), Tracking(home)
    document = json.loads((workspace.folder(scores) / "scores.json").read_text())
    feeds = pq.read_table(workspace.folder(guide) / "feeds.parquet").to_pylist()
    tracking.log_feeds(run, feeds)
    tracking.log_scores(run, document)
    made = {"guide": guide, "corpus": corpus, "clustering": clustering}
    tracking.log_progress(run, 0, {f"counts/{kind}/{name}": float(count) for kind, artifact in made.items() for name, count in artifact.counts.items()})
    if "train/loss" not in tracking.client.get_run(run).data.metrics:  # a cached training told nobody tonight
        with tracking.buffer(run) as metrics:
            for epoch, values in enumerate(workspace.details(checkpoint)["history"], 1):
                metrics.log(epoch, {f"train/{name}": value for name, value in values.items()})
    tracking.log_folder(run, workspace.folder(page))
    tracking.log_file(run, workspace.folder(scores) / "scores.json")
    dropped = read_dropped(workspace.folder(corpus))
    tracking.log_text(run, dropped_csv(dropped), "dropped_categories.csv")
    tracking.log_progress(run, 0, {f"dropped_categories/{reason}": float(count) for reason, count in dropped_by_reason(dropped).items()})
    about = {"model_version": verdict.version, "champion": verdict.champion, "gate": verdict.reason, "model": model.digest}
    tracking.set_tags(run, {f"guidespace.{name}": value for name, value in about.items()})
    if TaskRunContext.get():
        text = report_markdown(guide, feeds, document, verdict, read_readings(workspace.home))
        create_markdown_artifact(text, key="nightly-report", description="What tonight's run found")
        create_table_artifact(table=dropped[:SHOWN], key="dropped-categories", description=dropped_summary(dropped))  # pyright: ignore[reportUnusedCoroutine]
        where = tracking.where(run)
        if where.startswith("http"):
            create_link_artifact(link=where, link_text="MLflow run", key="mlflow-run", description="Parameters, metrics, plots, map and model of this run")
