"""Stage publish: everything to Page and Model; the gate; the report. What people see of a run is made here."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from prefect import get_run_logger, task
from prefect.artifacts import create_table_artifact
from prefect.context import TaskRunContext

from storage.arrays import open_array
from storage.artifacts import Checkpoint, Clustering, Corpus, Guide, Lexicon, Model, Page, Scores, Vectors
from storage.catalogue.titles import open_airings
from storage.readings import read_readings
from storage.stages import Stage
from storage.tracking import Champion, ModelVersion, Registry, Tracking, TrackingError
from storage.workspace import Workspace
from storage.yesterday import newest_other
from tasks.augment.lexicon import Lexicon as Opened
from tasks.cluster.partition import Density
from tasks.ingest.checks import check_guide
from tasks.preprocess.corpus import open_corpus
from tasks.publish.content import map_content
from tasks.publish.dropped import SHOWN, dropped_by_reason, dropped_csv, dropped_summary, read_dropped
from tasks.publish.figures import all_nights, draw_figures, write_nights
from tasks.publish.headline import headline
from tasks.publish.judge import decide_between, lineage
from tasks.publish.map import MOST_TIMES, render_map
from tasks.publish.plots import write_plots
from tasks.publish.report import Report, facts_of, report_markdown
from tasks.publish.settings import PublishSettings
from tasks.publish.verdict import Verdict

PAGE = Stage(Page, __file__, "draw")
MODEL = Stage(Model, __file__, "pack")
PLACES = "places.parquet"  # where the titles stand: the start of the next night


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
    """Registers the model as challenger and, if the gate says so, makes it the champion. Not cached; the same model changes nothing.

    Raises:
        TrackingError: ``publish.registered_model`` names another home's model.
    """
    workspace, registry = Workspace(home), Registry(home, name=settings.registered_model)
    folder = workspace.folder(model)
    sources = pq.read_table(workspace.folder(guide) / "feeds.parquet", columns=["source"])["source"].to_pylist()
    line = lineage(str(workspace.details(corpus)["salt"]), sources)
    example = pq.read_table(folder / "titles.parquet", columns=["raw_title"])["raw_title"][0].as_py()
    version = registry.register(run, folder, model.digest, example_title=example, lineage=line)
    past = registry.promoted(line)
    champion, missing = _champion(registry, past)
    same = champion is not None and champion.digest == model.digest
    decision = decide_between(
        workspace.folder(corpus), workspace.folder(scores), champion.folder if champion else None, same_model=same, incomparable=missing, first=not past,
        best_of_last=[before.quality for before in reversed(past) if before.quality is not None], seed=settings.seed, resamples=settings.resamples,
    )  # fmt: skip
    move = not same and {"auto": decision.promote, "always": True, "never": False}[settings.promote]
    reason = (
        decision.reason
        if move == decision.promote
        else f"publish.promote is {settings.promote}; the gate said: {decision.reason}"
    )
    now = datetime.now(UTC)
    if move:
        registry.promote(version, reason, at=now, quality=decision.quality)
    if not same:
        what = f"{'Champion since' if move else 'Not promoted on'} {now:%Y-%m-%d %H:%M} UTC: {reason}."
        registry.describe(version, f"{what}\n\n{model.counts['titles']:,} titles of {len(sources)} feed{'s' if len(sources) != 1 else ''}.")
    verdict = Verdict(
        name=registry.name, version=version, champion=move or same, reason=reason, quality=decision.quality, difference=decision.difference,
        logged_model=registry.logged_model(version),
    )  # fmt: skip
    get_run_logger().info("%s (%s)", verdict.message, reason)
    return verdict


def _champion(registry: Registry, past: Sequence[ModelVersion]) -> tuple[Champion | None, str]:
    """The champion, or None and why it cannot be had; None and nothing where no model of this lineage ever was it."""
    try:
        champion = registry.champion()
    except TrackingError as error:
        return None, str(error)
    if champion is None and past:
        return (
            None,
            f"no version of {registry.name} has the alias champion, and version {past[0].version} had it before",
        )
    return champion, ""


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
    run: str,
    before: Mapping[str, float] | None = None,
) -> Report:
    """Tells MLflow what came out (figures, scores, history, feeds, map, plots, categories) and writes the report.

    Args:
        home: Where everything is.
        guide, corpus, clustering, checkpoint, scores, page, model, verdict: Tonight's.
        run: MLflow run that is told.
        before: Headline figures of the run before.
    """
    workspace, tracking = Workspace(home), Tracking(home)
    document = json.loads((workspace.folder(scores) / "scores.json").read_text())
    feeds = pq.read_table(workspace.folder(guide) / "feeds.parquet").to_pylist()
    figures = headline(document, verdict, page.counts["titles"], guide.counts["programmes"])
    tracking.log_feeds(run, feeds)
    tracking.log_figures(
        run,
        figures,
        verdict.logged_model,
        tracking.log_snapshot(run, guide.digest, workspace.folder(guide), guide.counts),
    )
    tracking.log_scores(run, document)
    made = {"guide": guide, "corpus": corpus, "clustering": clustering}
    tracking.log_progress(run, 0, {f"counts/{kind}/{name}": float(count) for kind, artifact in made.items() for name, count in artifact.counts.items()})
    if "train/loss" not in tracking.client.get_run(run).data.metrics:  # a cached training told nobody tonight
        with tracking.buffer(run) as metrics:
            for epoch, values in enumerate(workspace.details(checkpoint)["history"], 1):
                metrics.log(epoch, {f"train/{name}": value for name, value in values.items()})
    for file in (
        workspace.folder(page) / "map.html",
        workspace.folder(page) / "plots.html",
        workspace.folder(scores) / "scores.json",
    ):
        tracking.log_file(run, file)
    dropped = read_dropped(workspace.folder(corpus))
    tracking.log_text(run, dropped_csv(dropped), "dropped_categories.csv")
    tracking.log_progress(run, 0, {f"dropped_categories/{reason}": float(count) for reason, count in dropped_by_reason(dropped).items()})
    about = {"model_version": verdict.version, "champion": verdict.champion, "gate": verdict.reason, "model": model.digest}
    tracking.set_tags(run, {f"guidespace.{name}": value for name, value in about.items()})
    if TaskRunContext.get():
        create_table_artifact(table=dropped[:SHOWN], key="dropped-categories", description=dropped_summary(dropped))  # pyright: ignore[reportUnusedCoroutine]
    where, shown = tracking.where(run), tracking.where(run, "map.html")
    linked = where.startswith("http")
    places = [
        f"Map: [map.html]({shown})" if linked else f"Map: `{workspace.folder(page) / 'map.html'}`",
        f"MLflow: [run {run}]({where})" if linked else f"MLflow: `{where}`",
        f"Model: `models:/{verdict.name}/{verdict.version}`",
    ]
    clusters = json.loads((workspace.folder(clustering) / "clusters.json").read_text(encoding="utf-8"))
    anomalies = check_guide(workspace.folder(guide)).anomalies
    text = report_markdown(
        guide,
        feeds,
        document,
        verdict,
        figures=figures,
        before=before or {},
        anomalies=anomalies,
        clusters=clusters,
        places=places,
        readings=read_readings(workspace.home),
    )
    return Report(markdown=text, figures=figures, link=where if linked else "")
