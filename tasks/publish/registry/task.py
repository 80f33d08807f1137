"""Registers the night's model, and makes it the champion if the gate says so."""

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
from tasks.publish.registry.gate import ANYWAY, NotComparable, ask_both, decide, lineage
from tasks.publish.registry.lineage import champion_of, fingerprints, other_lineage, salt_and_sources
from tasks.publish.report import Verdict
from tasks.publish.settings import PublishSettings

REFUSED = "guidespace.model.refused"  # event: tonight's model is not the champion


@task(name="register", task_run_name="register", persist_result=False)
def register(
    home: str, guide: Guide, corpus: Corpus, model: Model, settings: PublishSettings, run: str
) -> str:
    """Registers the model as challenger; returns its version. A model that is registered keeps its version.

    Raises:
        TrackingError: ``publish.registered_model`` is a model of another home.
    """
    workspace, registry = Workspace(home), Registry(home, name=settings.registered_model)
    folder, made_of = workspace.folder(model), salt_and_sources(workspace, guide, corpus)
    example = pq.read_table(folder / "titles.parquet", columns=["raw_title"])["raw_title"][0].as_py()
    of = {"lineage": lineage(*made_of), "feeds": fingerprints(*made_of)}
    return registry.register(run, folder, model.digest, example_title=example, **of)


@task(name="promote", task_run_name="promote", persist_result=False)
def promote(home: str, challenger: Challenger, settings: PublishSettings, run: str) -> Verdict:
    """Makes a registered model the champion if the gate allows it. Never cached.

    Logs a table of titles that both models answer. Does nothing if the challenger is the champion.
    """
    workspace, registry = Workspace(home), Registry(home, name=settings.registered_model)
    guide, corpus, model, version = challenger.guide, challenger.corpus, challenger.model, challenger.version
    folder, (salt, feeds) = workspace.folder(model), salt_and_sources(workspace, guide, corpus)
    line, feed_fingerprints = lineage(salt, feeds), fingerprints(salt, feeds)
    past, ever = registry.promoted(line), registry.promoted(limit=1)
    champion, missing = champion_of(registry, ever)
    same = champion is not None and champion.digest == model.digest
    if champion and not same:
        missing = other_lineage(line, feed_fingerprints, *registry.lineage_of(champion.version))
    best = [before.quality for before in reversed(past) if before.quality is not None]
    folders = workspace.folder(corpus), workspace.folder(challenger.scores)
    try:
        answers = ask_both(*folders, champion.folder if champion and not (same or missing) else None)
    except NotComparable as error:
        answers, missing = ask_both(*folders, None), str(error)
    rng = np.random.default_rng(settings.seed)
    decision = decide(
        answers, best, rng, settings.resamples, same_model=same, incomparable=missing, first=not ever
    )
    if decision.promote and (day := registry.rolled_back(version)):
        reason = f"a person rolled this version back on {day}; {ANYWAY}; the gate said: {decision.reason}"
        decision = dataclasses.replace(decision, promote=False, reason=reason)
    followed = {"auto": decision.promote, "first": not ever, "always": True, "never": False}
    move = not same and followed[settings.promote]
    reason, now = decision.reason, datetime.now(UTC)
    if move != decision.promote:
        reason = f"publish.promote is {settings.promote}; the gate said: {reason}"
    if move:
        registry.promote(version, reason, at=now, quality=decision.quality)
    if not same:
        if not move:
            registry.refuse(version, reason)
        beside = champion.folder if champion and answers.champion is not None else None
        table = example_table(*folders, answers, folder, beside)
        Tracking(home).log_table(run, table, "evaluation.json")
        what = f"{'Champion since' if move else 'Not promoted on'} {now:%Y-%m-%d %H:%M} UTC: {reason}."
        made_of = f"{model.counts['titles']:,} titles of {len(feeds)} feed{'s' if len(feeds) != 1 else ''}."
        registry.describe(version, f"{what}\n\n{made_of}")
    verdict = Verdict(
        name=registry.name,
        version=version,
        champion=move or same,
        reason=reason,
        quality=decision.quality,
        difference=decision.difference,
        logged_model=registry.logged_model(version),
    )
    refused = not (same or move or decision.promote or settings.promote == "never")
    if TaskRunContext.get() and refused:
        model_id = {"prefect.resource.id": f"guidespace.model.{verdict.name}"}
        emit_event(REFUSED, resource=model_id, payload={"version": version, "reason": reason})
    get_run_logger().info("%s (%s)", verdict.message, reason)
    return verdict
