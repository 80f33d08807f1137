"""Defines the Prefect tasks that register the model of a run in MLflow, and promote it if the gate agrees."""

import dataclasses
from contextlib import suppress
from datetime import UTC, datetime

import numpy as np
import pyarrow.parquet as pq
from prefect import get_run_logger, task
from prefect.context import TaskRunContext
from prefect.events import emit_event

from storage.artifacts import Corpus, Guide, Model
from storage.home.workspace import Workspace
from storage.stages import ROOT
from storage.tracking import Champion, Registry, Tracking
from tasks.publish.inputs import Challenger
from tasks.publish.registry.examples import example_table
from tasks.publish.registry.gate import CHAMPION, OVERRIDE, REFERENCE, decide_promotion
from tasks.publish.registry.lineage import (
    champion_or_reason,
    feed_fingerprints,
    lineage_id,
    lineage_mismatch,
    salt_and_sources,
)
from tasks.publish.registry.quality import (
    NotComparable,
    QualityScorer,
    QueryQualities,
    TonightsResults,
    neighbour_count,
    read_headline,
)
from tasks.publish.report import Verdict
from tasks.publish.settings import PublishSettings

MODEL_CODE = ROOT / "deployments" / "title_model.py"  # file that MLflow executes to load a model version
REFUSED = "guidespace.model.refused"  # name of the Prefect event for a model that was not promoted


@task(name="register", task_run_name="register", persist_result=False)
def register(
    home: str, guide: Guide, corpus: Corpus, model: Model, settings: PublishSettings, run: str
) -> str:
    """Registers a model in MLflow as challenger and returns its version.

    If a version with the same digest already exists, it is returned and no new version is created.

    Raises:
        TrackingError: ``publish.registered_model`` belongs to another home.
    """
    workspace, registry = Workspace(home), Registry(home, MODEL_CODE, settings.registered_model)
    folder, (salt, sources) = workspace.folder(model), salt_and_sources(workspace, guide, corpus)
    return registry.register(
        run,
        folder,
        model.digest,
        example_title=pq.read_table(folder / "titles.parquet", columns=["raw_title"])["raw_title"][0].as_py(),
        lineage=lineage_id(salt, sources),
        feeds=feed_fingerprints(salt, sources),
    )


@task(name="promote", task_run_name="promote", persist_result=False)
def promote(home: str, challenger: Challenger, settings: PublishSettings, run: str) -> Verdict:
    """Makes a registered model the champion (the served model) if the gate allows it; returns the decision.

    The task also logs the evaluation table (registry/examples.py) to the MLflow run ``run``. It changes
    nothing if the challenger already is the champion. Its result is never cached.
    """
    workspace, registry = Workspace(home), Registry(home, name=settings.registered_model)
    model, version, last_promoted = challenger.model, challenger.version, registry.promoted(limit=1)
    champion, no_champion_reason = champion_or_reason(registry, last_promoted)
    is_same_model = champion is not None and champion.digest == model.digest
    qualities, incomparable = _score(workspace, registry, challenger, None if is_same_model else champion)
    decision = decide_promotion(
        qualities,
        np.random.default_rng(settings.seed),
        settings.resamples,
        same_model=is_same_model,
        incomparable=no_champion_reason or incomparable,
        first=not last_promoted,
    )
    if decision.promote and (day := registry.rollback_day(version)):
        reason = f"this version was rolled back manually on {day}; {OVERRIDE}; the gate decided: "
        decision = dataclasses.replace(decision, promote=False, reason=reason + decision.reason)
    decisions = {"auto": decision.promote, "first": not last_promoted, "always": True, "never": False}
    is_promoted = not is_same_model and decisions[settings.promote]
    reason, now = decision.reason, datetime.now(UTC)
    if is_promoted != decision.promote:
        reason = f"publish.promote is {settings.promote}; the gate decided: {reason}"
    if is_promoted:
        registry.promote(version, reason, at=now, quality=decision.quality)
    if not is_same_model:
        if not is_promoted:
            registry.refuse(version, reason)
        compared_folder = champion.folder if champion and CHAMPION in qualities.others else None
        corpus = workspace.folder(challenger.corpus)
        table = example_table(corpus, qualities, workspace.folder(model), compared_folder)
        Tracking(home).log_table(run, table, "evaluation.json")
        state = "Champion since" if is_promoted else "Not promoted on"
        feeds = len(salt_and_sources(workspace, challenger.guide, challenger.corpus)[1])
        origin = f"{model.counts['titles']:,} titles of {feeds} feed{'s' if feeds != 1 else ''}."
        registry.describe(version, f"{state} {now:%Y-%m-%d %H:%M} UTC: {reason}.\n\n{origin}")
    verdict = Verdict(
        name=registry.name,
        version=version,
        champion=is_promoted or is_same_model,
        reason=reason,
        quality=decision.quality,
        difference=decision.difference,
        logged_model=registry.logged_model(version),
    )
    is_refused = not (is_same_model or is_promoted or decision.promote or settings.promote == "never")
    if TaskRunContext.get() and is_refused:
        model_id = {"prefect.resource.id": f"guidespace.model.{verdict.name}"}
        emit_event(REFUSED, resource=model_id, payload={"version": version, "reason": reason})
    get_run_logger().info("%s (%s)", verdict.message, reason)
    return verdict


def _score(
    workspace: Workspace, registry: Registry, challenger: Challenger, champion: Champion | None
) -> tuple[QueryQualities, str]:
    """Scores the challenger, the champion and the oldest promoted model on the same titles.

    Returns:
        The qualities, and the reason why the challenger and the champion cannot be compared ("" if they can,
        or if ``champion`` is None).
    """
    scores, corpus = workspace.folder(challenger.scores), workspace.folder(challenger.corpus)
    qualities = read_headline(scores)
    if champion is None:
        return qualities, ""
    salt, feeds = salt_and_sources(workspace, challenger.guide, challenger.corpus)
    lineage, fingerprints = lineage_id(salt, feeds), feed_fingerprints(salt, feeds)
    champion_lineage, champion_feeds = registry.lineage_of(champion.version)
    if mismatch := lineage_mismatch(lineage, fingerprints, champion_lineage, champion_feeds):
        return qualities, mismatch
    scorer = QualityScorer(corpus, qualities.titles, neighbour_count(scores))
    vectors = workspace.folder(challenger.vectors)
    challenger_qualities = {**qualities.challenger, **scorer.score_challenger(vectors, scores)}
    tonight = TonightsResults(workspace.folder(challenger.model), vectors, challenger_qualities)
    try:
        others = {CHAMPION: scorer.score_model(champion.folder, tonight)}
    except NotComparable as error:
        return qualities, str(error)
    reference = registry.oldest_promoted(lineage)
    if reference and reference.digest not in (champion.digest, challenger.model.digest):
        with suppress(NotComparable):  # the reference is a model of an older version of GuideSpace
            others[REFERENCE] = scorer.score_model(reference.folder, tonight)
    return qualities._replace(challenger=challenger_qualities, others=others), ""
