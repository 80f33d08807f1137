"""Registers the model of a night and promotes it if the gate allows it."""

import dataclasses
from datetime import UTC, datetime

import numpy as np
import pyarrow.parquet as pq
from prefect import get_run_logger, task
from prefect.context import TaskRunContext
from prefect.events import emit_event

from storage.artifacts import Corpus, Guide, Model
from storage.home.workspace import Workspace
from storage.tracking import Registry, Tracking
from tasks.publish.inputs import Challenger
from tasks.publish.registry.examples import example_table
from tasks.publish.registry.gate import OVERRIDE, NotComparable, decide, score_models
from tasks.publish.registry.lineage import (
    feed_fingerprints,
    find_champion,
    lineage_id,
    lineage_mismatch,
    salt_and_sources,
)
from tasks.publish.report import Verdict
from tasks.publish.settings import PublishSettings

REFUSED = "guidespace.model.refused"  # event: the gate did not promote tonight's model


@task(name="register", task_run_name="register", persist_result=False)
def register(
    home: str, guide: Guide, corpus: Corpus, model: Model, settings: PublishSettings, run: str
) -> str:
    """Registers the model as challenger and returns its version; a registered model keeps its version.

    Raises:
        TrackingError: ``publish.registered_model`` belongs to another home.
    """
    workspace, registry = Workspace(home), Registry(home, name=settings.registered_model)
    folder, origin = workspace.folder(model), salt_and_sources(workspace, guide, corpus)
    return registry.register(
        run,
        folder,
        model.digest,
        example_title=pq.read_table(folder / "titles.parquet", columns=["raw_title"])["raw_title"][0].as_py(),
        lineage=lineage_id(*origin),
        feeds=feed_fingerprints(*origin),
    )


@task(name="promote", task_run_name="promote", persist_result=False)
def promote(home: str, challenger: Challenger, settings: PublishSettings, run: str) -> Verdict:
    """Promotes a registered model to champion if the gate allows it. Never cached.

    Logs the evaluation table. Does nothing if the challenger is the champion.
    """
    workspace, registry = Workspace(home), Registry(home, name=settings.registered_model)
    guide, corpus, model, version = challenger.guide, challenger.corpus, challenger.model, challenger.version
    folder, (salt, feeds) = workspace.folder(model), salt_and_sources(workspace, guide, corpus)
    lineage = lineage_id(salt, feeds)
    past, last_promoted = registry.promoted(lineage), registry.promoted(limit=1)
    champion, incomparable = find_champion(registry, last_promoted)
    same = champion is not None and champion.digest == model.digest
    if champion and not same:
        champion_origin = registry.lineage_of(champion.version)
        incomparable = lineage_mismatch(lineage, feed_fingerprints(salt, feeds), *champion_origin)
    folders = workspace.folder(corpus), workspace.folder(challenger.scores)
    try:
        answers = score_models(*folders, champion.folder if champion and not (same or incomparable) else None)
    except NotComparable as error:
        answers, incomparable = score_models(*folders, None), str(error)
    decision = decide(
        answers,
        [promoted.quality for promoted in reversed(past) if promoted.quality is not None],
        np.random.default_rng(settings.seed),
        settings.resamples,
        same_model=same,
        incomparable=incomparable,
        first=not last_promoted,
    )
    if decision.promote and (day := registry.rolled_back(version)):
        reason = (
            f"this version was rolled back manually on {day}; {OVERRIDE}; the gate decided: {decision.reason}"
        )
        decision = dataclasses.replace(decision, promote=False, reason=reason)
    rules = {"auto": decision.promote, "first": not last_promoted, "always": True, "never": False}
    is_promoted = not same and rules[settings.promote]
    reason, now = decision.reason, datetime.now(UTC)
    if is_promoted != decision.promote:
        reason = f"publish.promote is {settings.promote}; the gate decided: {reason}"
    if is_promoted:
        registry.promote(version, reason, at=now, quality=decision.quality)
    if not same:
        if not is_promoted:
            registry.refuse(version, reason)
        compared = champion.folder if champion and answers.champion is not None else None
        table = example_table(*folders, answers, folder, compared)
        Tracking(home).log_table(run, table, "evaluation.json")
        state = "Champion since" if is_promoted else "Not promoted on"
        origin = f"{model.counts['titles']:,} titles of {len(feeds)} feed{'s' if len(feeds) != 1 else ''}."
        registry.describe(version, f"{state} {now:%Y-%m-%d %H:%M} UTC: {reason}.\n\n{origin}")
    verdict = Verdict(
        name=registry.name,
        version=version,
        champion=is_promoted or same,
        reason=reason,
        quality=decision.quality,
        difference=decision.difference,
        logged_model=registry.logged_model(version),
    )
    refused = not (same or is_promoted or decision.promote or settings.promote == "never")
    if TaskRunContext.get() and refused:
        model_id = {"prefect.resource.id": f"guidespace.model.{verdict.name}"}
        emit_event(REFUSED, resource=model_id, payload={"version": version, "reason": reason})
    get_run_logger().info("%s (%s)", verdict.message, reason)
    return verdict
