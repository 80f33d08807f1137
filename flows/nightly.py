"""Defines the nightly flow: it reads a TV guide, trains title embeddings, and publishes a map and a model."""

import datetime

from prefect import flow

from flows.defaults import DEFAULT_HOME
from flows.label_sources import read_label_sources
from flows.nightly_run import NightlyResult
from flows.run_context import RUN_HOOKS, name_run, open_night
from flows.settings import NO_CHANGES, Changes, Feeds, Preset, Settings, resolve_settings
from flows.trained_models import find_reusable_model, find_trained_models
from storage.artifacts import Baselines
from storage.home.zones import home_zone, in_zone
from storage.stages import previous_artifact
from tasks.augment.task import augment
from tasks.cluster.task import STAGE as CLUSTERS
from tasks.cluster.task import ClusteringInputs, cluster
from tasks.embed.task import embed
from tasks.evaluate.task import evaluate, score_baselines
from tasks.ingest.task import check, ingest
from tasks.neighbours.task import STAGE as NEAREST
from tasks.neighbours.task import find_nearest
from tasks.predictor.task import fit_linear
from tasks.preprocess.task import preprocess
from tasks.publish.inputs import Challenger, LayoutInputs, PageInputs, ReportInputs
from tasks.publish.registry.task import promote, register
from tasks.publish.task import LAYOUT, PAGE, compute_layout, draw, pack, report
from tasks.tokenize.task import tokenize
from tasks.train.task import train


@flow(name="nightly", flow_run_name=name_run, **RUN_HOOKS)
def nightly(
    feeds: Feeds,
    preset: Preset = "laptop",
    changes: Changes = NO_CHANGES,
    as_of: datetime.datetime | None = None,
    home: str = DEFAULT_HOME,
    settings: Settings | None = None,
) -> NightlyResult:
    """Reads a TV guide, trains title embeddings, scores them, and publishes a map and a model.

    Args:
        feeds: XMLTV files, globs, folders or URLs, plain or compressed; secret URLs: env:NAME or secret:NAME.
        preset: Settings to start from: laptop (any machine with two cores), gpu, or smoke (a quick test).
        changes: Changes of the preset, such as train.epochs=5 or publish.promote=always.
        as_of: Use the guide as it was at this instant (by default in the zone of the home). Feeds are then
            optional. Empty: now.
        home: Folder that holds everything a run writes: catalogue, artifacts, MLflow's database.
        settings: Complete settings that replace the preset; None: use the preset.
    """
    settings = resolve_settings(preset, changes, settings)
    as_of = as_of and in_zone(as_of, home_zone(home))
    with open_night(home, feeds, settings, as_of=as_of) as night:
        guide = ingest(home, feeds, settings.ingest, as_of)
        anomalies_future = check.submit(home, guide, night.run)
        label_sources = read_label_sources(home, settings.preprocess, as_of)
        # A night of a past date must not use a model that has been trained on later programmes.
        newest_model = None if as_of else next(find_trained_models(home, settings, label_sources), None)
        previous_vocabulary = newest_model and newest_model.vocabulary
        vocabulary = tokenize(home, guide, settings.tokenize, previous=previous_vocabulary)
        salt = settings.tokenize.splits.salt
        corpus = preprocess(home, guide, vocabulary, salt, settings.preprocess, label_sources)
        reused_model = find_reusable_model(home, vocabulary, corpus, settings, label_sources)
        baselines = (
            reused_model.baselines
            if reused_model
            else score_baselines.submit(home, corpus, settings.evaluate)
        )
        linear_future = fit_linear.submit(home, corpus)
        checkpoint = (
            reused_model.checkpoint if reused_model else train(home, corpus, settings.train, night.run)
        )
        encoder = (
            reused_model.encoder
            if reused_model
            else augment(home, vocabulary, corpus, checkpoint, settings.train.encoder, settings.augment)
        )
        vectors = embed(home, corpus, encoder)
        model_future = pack.submit(home, corpus, encoder, vectors, linear_future.result())
        count, search = settings.cluster.strategy.neighbours, settings.cluster.search
        previous_nearest = previous_artifact(home, NEAREST, corpus, vectors, count, search)
        nearest = find_nearest(home, corpus, vectors, count, search, previous=previous_nearest)
        layout_inputs = LayoutInputs(
            corpus=corpus,
            encoder=encoder,
            vectors=vectors,
            nearest=nearest,
            neighbours=settings.publish.neighbours,
            seed=settings.publish.seed,
        )
        layout_future = compute_layout.submit(
            home,
            layout_inputs,
            previous=previous_artifact(home, LAYOUT, layout_inputs),
            wait_for=[baselines],  # they use the helper process, too  # pyright: ignore[reportCallIssue]
        )
        clustering_inputs = ClusteringInputs(
            corpus=corpus, vectors=vectors, nearest=nearest, settings=settings.cluster
        )
        clustering = cluster(
            home, clustering_inputs, previous=previous_artifact(home, CLUSTERS, clustering_inputs)
        )
        model = model_future.result()
        baselines = baselines if isinstance(baselines, Baselines) else baselines.result()
        scores = evaluate(home, corpus, vectors, clustering, baselines, model, settings.evaluate)
        page_inputs = PageInputs(
            guide=guide,
            corpus=corpus,
            checkpoint=checkpoint,
            nearest=nearest,
            layout=layout_future.result(),
            clustering=clustering,
            scores=scores,
            settings=settings.publish,
        )
        page_future = draw.submit(
            home, page_inputs, previous=previous_artifact(home, PAGE, page_inputs), at=night.at
        )
        version = register(home, guide, corpus, model, settings.publish, night.run)
        page = page_future.result()
        # Promotion comes after everything that can fail: a failed run keeps the champion.
        challenger = Challenger(
            version=version, guide=guide, corpus=corpus, vectors=vectors, model=model, scores=scores
        )
        verdict = promote(home, challenger, settings.publish, night.run)
        report_inputs = ReportInputs(
            guide=guide,
            corpus=corpus,
            checkpoint=checkpoint,
            clustering=clustering,
            scores=scores,
            page=page,
            model=model,
            verdict=verdict,
            anomalies=anomalies_future.result(),
            previous_night=night.read_previous(),
        )
        run_report = report(home, report_inputs, night.run)
        return night.result(corpus, scores, page, model, verdict, run_report)
