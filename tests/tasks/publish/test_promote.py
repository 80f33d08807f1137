"""What becomes of a challenger: the gate fails closed, a person may overrule it, and MLflow shows what it was
judged by."""

import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest

from storage.digests import content_digest
from storage.tracking import Registry, Tracking
from tasks.cluster.settings import ClusterSettings
from tasks.evaluate.settings import EvaluateSettings
from tasks.publish.settings import PublishSettings

SETTINGS = PublishSettings(resamples=100)


@pytest.fixture(scope="module")
def published(learnt, tmp_path_factory):
    """The toy world up to its model: (home, guide, corpus, model, scores). Read only."""
    from prefect.logging import disable_run_logger

    from tasks.cluster.task import cluster
    from tasks.embed.task import embed
    from tasks.evaluate.task import evaluate
    from tasks.publish.task import pack

    source, guide, _, corpus, _, encoder = learnt
    home = tmp_path_factory.mktemp("published") / "home"
    shutil.copytree(source, home)
    place = str(home)
    with disable_run_logger():
        vectors = embed.fn(place, corpus, encoder)
        clustering = cluster.fn(place, corpus, vectors, ClusterSettings(seeds=1))
        scores = evaluate.fn(
            place, corpus, vectors, clustering, EvaluateSettings(baselines=(), resamples=100)
        )
        return home, guide, corpus, pack.fn(place, corpus, encoder, vectors), scores


@pytest.fixture
def stage(published, without_run, tmp_path, monkeypatch):
    """``promote`` for a model of that digest, and the registry, in a home of the test's own."""
    from tasks.publish.task import promote

    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    source, guide, corpus, model, scores = published
    home = tmp_path / "home"
    shutil.copytree(source, home)
    run = Tracking(home).start_run("flow-1", "friday", params={"train": {"epochs": 6}})

    def decide(digest, **settings):
        return without_run(
            promote,
            str(home),
            guide,
            corpus,
            replace(model, digest=digest),
            scores,
            replace(SETTINGS, **settings),
            run,
        )

    return SimpleNamespace(promote=decide, registry=Registry(home), home=home, run=run)


def damage(registry):
    """Makes the champion's model one that this version cannot read."""
    version, _, folder = registry.champion()
    (folder / "lexicon.json").write_text("{}")
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


def test_the_first_model_of_a_lineage_is_promoted_without_a_comparison(stage, monkeypatch):
    stage.promote("a" * 64)
    damage(stage.registry)
    monkeypatch.setattr("tasks.publish.task.lineage", lambda salt, sources: "of-other-feeds")
    verdict = stage.promote("b" * 64)
    assert verdict.champion and stage.registry.champion().version == "2"
    assert (
        "the first model of these feeds" in verdict.reason
        and "cannot be read by this version" in verdict.reason
    )


def test_a_champion_whose_files_are_gone_neither_ends_the_run_nor_is_replaced(stage):
    stage.promote("a" * 64)
    shutil.rmtree(stage.home / "mlflow" / "models")
    verdict = stage.promote("b" * 64)
    assert not verdict.champion and "has no files in" in verdict.reason
    assert stage.promote("b" * 64, promote="always").champion and stage.registry.champion().version == "2"


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
        for name in ("model", "content", "lineage", "logged_model", "promoted_at", "reason", "score.quality")
    }
    assert version.description.startswith("Champion since ") and verdict.reason in version.description
    damage(stage.registry)
    refused = stage.promote("b" * 64)
    assert stage.registry.client.get_model_version(refused.name, refused.version).description.startswith(
        "Not promoted on "
    )
    model = stage.registry.client.get_logged_model(verdict.logged_model)
    assert model.params == {"train.epochs": "6"}
