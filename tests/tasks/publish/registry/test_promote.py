"""What becomes of a challenger: the gate fails closed, a person may overrule it, and MLflow shows what it was
judged by."""

import shutil
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from storage.digests import content_digest
from storage.tracking import Registry, Tracking
from tasks.evaluate.settings import EvaluateSettings
from tasks.publish.settings import PublishSettings
from tests import worlds

SETTINGS = PublishSettings(resamples=100)


@pytest.fixture(scope="module")
def published(learnt, tmp_path_factory):
    """The toy world up to its model: (home, guide, corpus, model, scores). Read only."""
    from prefect.logging import disable_run_logger

    from tasks.embed.task import embed
    from tasks.evaluate.task import evaluate, score_baselines
    from tasks.publish.task import pack

    source, guide, _, corpus, _, encoder = learnt
    home = tmp_path_factory.mktemp("published") / "home"
    shutil.copytree(source, home)
    place = str(home)
    with disable_run_logger():
        vectors = embed.fn(place, corpus, encoder)
        clustering = worlds.publish_clusters(home, corpus, vectors)
        settings = EvaluateSettings(baselines=(), resamples=100)
        baselines = score_baselines.fn(place, corpus, settings)
        scores = evaluate.fn(place, corpus, vectors, clustering, baselines, settings)
        return home, guide, corpus, pack.fn(place, corpus, encoder, vectors), scores


@pytest.fixture
def stage(published, without_run, tmp_path, monkeypatch):
    """``register`` and ``promote`` for a model of that digest, and the registry, in a home of the test's
    own."""
    from tasks.publish.inputs import Challenger
    from tasks.publish.registry.task import promote, register

    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    source, guide, corpus, model, scores = published
    home = tmp_path / "home"
    shutil.copytree(source, home)
    run = Tracking(home).start_run("flow-1", "friday", params={"train": {"epochs": 6}})

    def decide(digest, **settings):
        challenger, chosen = replace(model, digest=digest), replace(SETTINGS, **settings)
        version = without_run(register, str(home), guide, corpus, challenger, chosen, run)
        inputs = Challenger(version=version, guide=guide, corpus=corpus, model=challenger, scores=scores)
        return without_run(promote, str(home), inputs, chosen, run)

    return SimpleNamespace(promote=decide, registry=Registry(home), home=home, run=run)


def damage(registry):
    """Makes the champion's model one that this version cannot read."""
    version, _, folder = registry.champion()
    (folder / "lexicon.json").write_text("{}", encoding="utf-8")
    registry.client.set_model_version_tag(
        registry.name, version, "guidespace.content", content_digest(folder)
    )


def test_the_first_run_promotes_and_a_comparable_one_is_compared(stage):
    first = stage.promote("a" * 64)
    assert (
        first.champion
        and first.difference is None
        and first.message == "version 1 is champion: quality 1.000"
    )
    second = stage.promote("b" * 64)
    assert (second.version, second.champion, second.difference) == ("2", True, 0)
    assert second.message == f"version 2 is champion: quality {second.quality:.3f}, +0.000"
    again = stage.promote("b" * 64)
    assert (again.version, again.champion, again.quality) == (
        "2",
        True,
        second.quality,
    ) and again.reason.startswith("same model")


def test_a_challenger_that_cannot_be_compared_is_not_promoted(stage):
    stage.promote("a" * 64)
    damage(stage.registry)
    verdict = stage.promote("b" * 64)
    assert not verdict.champion and stage.registry.champion().version == "1"
    assert (
        verdict.reason.startswith("not comparable with the champion, which stays: ")
        and "cannot be read by this version" in verdict.reason
    )
    assert "publish.promote=always" in verdict.reason
    assert verdict.message == f"version 2 is not promoted: {verdict.reason}"
    assert [past.version for past in stage.registry.promoted()] == ["1"]


def test_a_model_of_another_lineage_asks_for_a_person(stage, monkeypatch):
    stage.promote("a" * 64)
    monkeypatch.setattr("tasks.publish.registry.task.lineage", lambda salt, sources: "of-other-feeds")
    monkeypatch.setattr("tasks.publish.registry.task.fingerprints", lambda salt, sources: ["0" * 8])
    verdict = stage.promote("b" * 64)
    assert not verdict.champion and stage.registry.champion().version == "1"
    assert "lacks 1 of the 1 feed that the champion was made of" in verdict.reason
    assert stage.promote("b" * 64, promote="always").champion


@pytest.mark.slow
def test_a_version_that_was_rolled_back_is_not_promoted_again_but_by_a_person(stage):
    for digest in "ab":
        assert stage.promote(digest * 64).champion
    assert stage.registry.rollback(at=datetime(2026, 11, 23, 9, tzinfo=UTC)) == ("2", "1")
    verdict = stage.promote("b" * 64)
    assert (verdict.version, verdict.champion) == ("2", False) and stage.registry.champion().version == "1"
    assert verdict.reason.startswith(
        "a person rolled this version back on 2026-11-23; run again with --promote"
    )
    assert stage.promote("c" * 64).champion and stage.registry.champion().version == "3"
    assert stage.promote("b" * 64, promote="always").champion
    assert stage.registry.rolled_back("2") == "" and stage.registry.champion().version == "2"


def test_a_table_shows_what_both_models_answer(stage, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", stage.registry.uri)  # load_table asks MLflow's global one
    tracking = Tracking(stage.home)

    def table():
        return tracking.client.load_table(tracking.experiment_id, "evaluation.json", run_ids=[stage.run])

    stage.promote("a" * 64)
    assert [*table().columns] == ["title", "held_out", "categories", "quality", "nearest"]
    stage.promote("b" * 64)
    found = table()
    assert {"champion_quality", "champion_nearest", "verdict"} < {*found.columns} and 2 < len(found) <= 100
    assert {*found["verdict"]} == {"same"} and [*found["nearest"]] == [*found["champion_nearest"]]
    kind = found["categories"][0]
    near = found["nearest"][0].split("; ")
    assert len(near) == 5 and all(line.endswith(")") and float(line[-5:-1]) <= 1 for line in near)
    assert kind and found["title"].is_unique
    stage.promote("b" * 64)  # the champion itself: nothing to show
    assert len(table()) == len(found)


def test_a_guide_that_has_more_feeds_is_compared(stage, monkeypatch):
    from tasks.publish.registry.lineage import fingerprints

    stage.promote("a" * 64)
    monkeypatch.setattr("tasks.publish.registry.task.lineage", lambda salt, sources: "of-more-feeds")
    monkeypatch.setattr(
        "tasks.publish.registry.task.fingerprints",
        lambda salt, sources: fingerprints(salt, [*sources, "more.xml"]),
    )
    verdict = stage.promote("b" * 64)
    assert verdict.champion and verdict.difference == 0


@pytest.mark.slow
def test_a_smoke_run_is_promoted_only_where_nothing_was_before(stage):
    assert stage.promote("a" * 64, promote="first").champion
    verdict = stage.promote("b" * 64, promote="first")
    assert not verdict.champion and stage.registry.champion().version == "1"
    assert verdict.reason.startswith("publish.promote is first; the gate said: not shown to be worse")
    stage.registry.client.delete_registered_model_alias(stage.registry.name, "champion")
    assert not stage.promote("b" * 64, promote="first").champion


@pytest.mark.slow
def test_a_champion_whose_files_are_gone_neither_ends_the_run_nor_is_replaced(stage):
    stage.promote("a" * 64)
    shutil.rmtree(stage.home / "mlflow" / "models")
    verdict = stage.promote("b" * 64)
    assert not verdict.champion and "has no files in" in verdict.reason
    assert stage.promote("b" * 64, promote="always").champion and stage.registry.champion().version == "2"


@pytest.mark.slow
def test_an_alias_that_somebody_took_away_is_not_given_to_the_next_comer(stage):
    stage.promote("a" * 64)
    stage.registry.client.delete_registered_model_alias(stage.registry.name, "champion")
    verdict = stage.promote("b" * 64)
    assert (
        not verdict.champion
        and "no version of guidespace-titles has the alias champion, and version 1 had it before"
        in verdict.reason
    )


@pytest.mark.parametrize(("setting", "champion"), [("always", "2"), ("never", "1")])
def test_a_person_may_overrule_the_gate(stage, setting, champion):
    stage.promote("a" * 64)
    if setting == "always":
        damage(stage.registry)
    verdict = stage.promote("b" * 64, promote=setting)
    assert stage.registry.champion().version == champion and verdict.champion == (champion == "2")
    assert verdict.reason.startswith(f"publish.promote is {setting}; the gate said: ")


def test_the_setting_does_not_make_the_map_anew(published):
    from tasks.publish.task import PAGE

    keys = {
        PAGE.key(published[2], settings)
        for settings in (
            SETTINGS,
            replace(SETTINGS, promote="always"),
            replace(SETTINGS, registered_model="x"),
            replace(SETTINGS, keep=3),
        )
    }
    assert len(keys) == 1 and PAGE.key(published[2], replace(SETTINGS, heading="x")) not in keys


def test_a_version_says_in_few_tags_and_a_description_what_became_of_it(stage):
    verdict = stage.promote("a" * 64)
    version = stage.registry.client.get_model_version(verdict.name, verdict.version)
    assert set(version.tags) == {
        f"guidespace.{name}"
        for name in (
            "model",
            "content",
            "lineage",
            "feeds",
            "home",
            "logged_model",
            "promoted_at",
            "reason",
            "score.quality",
        )
    }
    assert version.description.startswith("Champion since ") and verdict.reason in version.description
    damage(stage.registry)
    refused = stage.promote("b" * 64)
    tags = stage.registry.client.get_model_version(refused.name, refused.version).tags
    assert tags["guidespace.reason"] == refused.reason and "guidespace.promoted_at" not in tags
    assert stage.registry.client.get_model_version(refused.name, refused.version).description.startswith(
        "Not promoted on "
    )
    model = stage.registry.client.get_logged_model(verdict.logged_model)
    assert model.params == {"train.epochs": "6"}
