"""The nightly run: a TV guide in, a scored and published space out. The whole road on one screen."""

from __future__ import annotations

import datetime

from prefect import flow

from flows.night import Outcome, close_crashed, name_run, open_night
from flows.presets import LAPTOP
from flows.settings import Settings
from tasks.augment.task import augment
from tasks.cluster.task import cluster
from tasks.embed.task import embed
from tasks.evaluate.task import evaluate
from tasks.ingest.task import check, ingest
from tasks.preprocess.categories import read_mapping
from tasks.preprocess.task import preprocess
from tasks.publish.task import draw, pack, promote, report
from tasks.tokenize.task import tokenize
from tasks.train.task import train


@flow(name="nightly", flow_run_name=name_run, on_crashed=[close_crashed], on_cancellation=[close_crashed])
def nightly(feeds: list[str], home: str = "guidespace-home", settings: Settings = LAPTOP, as_of: datetime.datetime | None = None) -> Outcome:
    """Turns a TV guide into a space and publishes it.

    Args:
        feeds: XMLTV files, globs, folders, URLs, plain or compressed; env:NAME or secret:NAME hide a URL.
        home: Folder that holds everything a run writes: catalogue, artifacts, MLflow's database.
        settings: Of every stage; the defaults suit any machine with two cores.
        as_of: Runs on what was known then; feeds may be left out. Empty is now.
    """
    with open_night(home, feeds, settings) as night:
        guide = ingest(home, feeds, settings.ingest, as_of)
        check(home, guide, night.run)
        vocabulary = tokenize(home, guide, settings.tokenize)
        corpus = preprocess(home, guide, vocabulary, settings.tokenize, settings.preprocess, read_mapping(settings.preprocess.category_mapping))
        checkpoint = train(home, corpus, settings.train, night.run)
        lexicon = augment(home, vocabulary, checkpoint, settings.tokenize, settings.train, settings.augment)
        vectors = embed(home, corpus, lexicon)
        clustering = cluster(home, corpus, vectors, settings.cluster)
        scores = evaluate(home, corpus, vectors, clustering, settings.evaluate)
        page = draw(home, guide, corpus, checkpoint, lexicon, vectors, clustering, scores, settings.publish)
        model = pack(home, corpus, lexicon, vectors)
        verdict = promote(home, guide, corpus, model, scores, settings.publish, night.run)
        told = report(
            home, guide, corpus, clustering, checkpoint, scores, page, model, verdict, night.run, night.before
        )
        return night.outcome(corpus, scores, page, model, verdict, told)
