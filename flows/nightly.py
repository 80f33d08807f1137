"""The nightly run: a TV guide in, a scored and published embedding space out."""

import datetime
from collections.abc import Sequence

from prefect import flow

from flows.corpus import corpus_inputs
from flows.night import NightlyResult, close_crashed, name_run, open_night
from flows.settings import NO_CHANGES, Feeds, Preset, Settings, settle
from storage.stages import previous
from tasks.augment.task import augment
from tasks.cluster.task import STAGE as CLUSTERS
from tasks.cluster.task import cluster
from tasks.embed.task import embed
from tasks.evaluate.task import evaluate, score_baselines
from tasks.ingest.task import check, ingest
from tasks.neighbours.task import find_nearest
from tasks.preprocess.task import preprocess
from tasks.publish.registry.task import promote, register
from tasks.publish.task import LAYOUT, PAGE, draw, lay_out, pack, report
from tasks.tokenize.task import tokenize
from tasks.train.task import train


@flow(name="nightly", flow_run_name=name_run, on_crashed=[close_crashed], on_cancellation=[close_crashed])
def nightly(
    feeds: Feeds,
    preset: Preset = "laptop",
    changes: Sequence[str] = NO_CHANGES,
    as_of: datetime.datetime | None = None,
    home: str = "guidespace-home",
    settings: Settings | None = None,
) -> NightlyResult:
    """Turns a TV guide into an embedding space and publishes it.

    Args:
        feeds: XMLTV files, globs, folders, URLs, plain or compressed; env:NAME or secret:NAME hide a URL.
        preset: Settings to start from: laptop suits any machine with two cores, smoke only tries.
        changes: What differs from the preset, such as train.epochs=5 or publish.promote=always.
        as_of: Runs on what was known then; feeds may be left out. Empty is now.
        home: Folder that holds everything a run writes: catalogue, artifacts, MLflow's database.
        settings: All settings one by one, in place of the preset's; None: as the preset has them.
    """
    settings = settle(preset, changes, settings)
    with open_night(home, feeds, settings, as_of=as_of) as night:
        guide = ingest(home, feeds, settings.ingest, as_of)
        anomalies = check.submit(home, guide, night.run)
        vocabulary = tokenize(home, guide, settings.tokenize)
        inputs = corpus_inputs(home, settings.tokenize, settings.preprocess, as_of)
        corpus = preprocess(home, guide, vocabulary, *inputs)
        baselines = score_baselines.submit(home, corpus, settings.evaluate)
        checkpoint = train(home, corpus, settings.train, night.run)
        encoder = augment(home, vocabulary, corpus, checkpoint, settings.train.encoder, settings.augment)
        vectors = embed(home, corpus, encoder)
        packed = pack.submit(home, corpus, encoder, vectors)
        compared = settings.cluster.strategy.neighbours, settings.cluster.search
        nearest = find_nearest(home, corpus, vectors, *compared)
        placed = corpus, encoder, vectors, nearest, settings.publish.neighbours, settings.publish.seed
        before = previous(home, LAYOUT, *placed)
        # They share a process, in which a baseline would wait for the layout.
        layout = lay_out.submit(home, *placed, before, wait_for=[baselines])  # pyright: ignore[reportCallIssue]
        grouped = corpus, vectors, nearest, settings.cluster
        clustering = cluster(home, *grouped, previous(home, CLUSTERS, *grouped))
        scores = evaluate(home, corpus, vectors, clustering, baselines.result(), settings.evaluate)
        model = packed.result()
        made = layout.result(), clustering, scores
        drawn = guide, corpus, checkpoint, vectors, nearest, *made, settings.publish
        drawing = draw.submit(home, *drawn, previous(home, PAGE, *drawn), night.at)
        version = register(home, guide, corpus, model, settings.publish, night.run)
        page, found = drawing.result(), anomalies.result()
        judged = guide, corpus, model, scores, settings.publish, night.run
        verdict = promote(home, *judged, version)  # the last: a run that fails leaves the champion as it was
        made = guide, corpus, clustering, checkpoint, scores, page, model, verdict
        published = report(home, *made, found, night.run, *night.before())
        return night.result(corpus, scores, page, model, verdict, published)
