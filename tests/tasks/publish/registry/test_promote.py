"""Promotion of challengers by the gate and by settings, and its traces in MLflow."""

import shutil
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from storage.digests import content_digest
from storage.tracking import Registry, Tracking
from tasks.evaluate.settings import EvaluateSettings
from tasks.publish.registry.quality import QualityScorer
from tasks.publish.settings import PublishSettings
from tests import worlds

SETTINGS = PublishSettings(resamples=100)


@pytest.fixture(scope="module")
def published(learnt, tmp_path_factory):
    """The toy world up to its model: (home, guide, corpus, vectors, model, scores). Read only."""
    from prefect.logging import disable_run_logger

    from tasks.embed.task import embed
    from tasks.evaluate.task import evaluate, score_baselines
    from tasks.predictor.task import fit_linear
    from tasks.publish.task import pack

    source, guide, _, corpus, _, encoder = learnt
    home = tmp_path_factory.mktemp("published") / "home"
    shutil.copytree(source, home)
    place = str(home)
    with disable_run_logger():
        vectors, linear = embed.fn(place, corpus, encoder), fit_linear.fn(place, corpus)
        clustering = worlds.publish_clusters(home, corpus, vectors)
        settings = EvaluateSettings(baselines=(), resamples=100)
        baselines = score_baselines.fn(place, corpus, settings)
        model = pack.fn(place, corpus, encoder, vectors, linear)
        scores = evaluate.fn(place, corpus, vectors, clustering, baselines, model, settings)
        return home, guide, corpus, vectors, model, scores


@pytest.fixture
def stage(published, without_run, tmp_path, monkeypatch):
    """``promote(digest, **settings)`` registers and promotes a model in a new home."""
    from tasks.publish.inputs import Challenger
    from tasks.publish.registry.task import promote, register

    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    source, guide, corpus, vectors, model, scores = published
    home = tmp_path / "home"
    shutil.copytree(source, home)
    run = Tracking(home).start_run("flow-1", "friday", params={"train": {"epochs": 6}})

    def decide(digest, **settings):
        challenger, chosen = replace(model, digest=digest), replace(SETTINGS, **settings)
        version = without_run(register, str(home), guide, corpus, challenger, chosen, run)
        inputs = Challenger(
            version=version, guide=guide, corpus=corpus, vectors=vectors, model=challenger, scores=scores
        )
        return without_run(promote, str(home), inputs, chosen, run)

    return SimpleNamespace(promote=decide, registry=Registry(home), home=home, run=run)


def damage(registry):
    """Makes the champion's model unreadable."""
    version, _, folder = registry.champion()
    (folder / "lexicon.json").write_text("{}", encoding="utf-8")
    registry.mlflow.client.set_model_version_tag(
        registry.name, version, "guidespace.content", content_digest(folder)
    )


def test_the_first_run_promotes_and_a_comparable_one_is_compared(stage):
    first = stage.promote("a" * 64)
    assert first.champion and first.difference is None
    second = stage.promote("b" * 64)
    assert (second.version, second.champion, second.difference) == ("2", True, 0)
    again = stage.promote("b" * 64)
    assert (again.version, again.champion, again.quality) == ("2", True, second.quality)
    assert again.reason.startswith("same model")


def test_a_challenger_that_cannot_be_compared_is_not_promoted(stage):
    stage.promote("a" * 64)
    damage(stage.registry)
    verdict = stage.promote("b" * 64)
    assert not verdict.champion and stage.registry.champion().version == "1"
    assert verdict.reason.startswith(
        "not comparable with the champion, which stays: this version of GuideSpace cannot read"
    )
    assert "publish.promote=always" in verdict.reason
    assert [past.version for past in stage.registry.promoted()] == ["1"]


def test_a_model_of_another_lineage_is_promoted_manually(stage, monkeypatch):
    stage.promote("a" * 64)
    monkeypatch.setattr("tasks.publish.registry.task.lineage_id", lambda salt, sources: "of-other-feeds")
    monkeypatch.setattr("tasks.publish.registry.task.feed_fingerprints", lambda salt, sources: ["0" * 8])
    verdict = stage.promote("b" * 64)
    assert not verdict.champion and stage.registry.champion().version == "1"
    assert "lacks 1 of the 1 feed of the champion" in verdict.reason
    assert stage.promote("b" * 64, promote="always").champion


@pytest.mark.slow
def test_a_version_that_was_rolled_back_is_promoted_again_only_manually(stage):
    for digest in "ab":
        assert stage.promote(digest * 64).champion
    assert stage.registry.rollback(at=datetime(2026, 11, 23, 9, tzinfo=UTC)) == ("2", "1")
    verdict = stage.promote("b" * 64)
    assert (verdict.version, verdict.champion) == ("2", False) and stage.registry.champion().version == "1"
    assert verdict.reason.startswith(
        "this version was rolled back manually on 2026-11-23; run again with --promote"
    )
    assert stage.promote("c" * 64).champion and stage.registry.champion().version == "3"
    assert stage.promote("b" * 64, promote="always").champion
    assert stage.registry.rollback_day("2") == "" and stage.registry.champion().version == "2"


def test_the_evaluation_table_compares_both_models(stage, monkeypatch):
    monkeypatch.setenv(
        "MLFLOW_TRACKING_URI", stage.registry.mlflow.uri
    )  # load_table asks MLflow's global one
    tracking = Tracking(stage.home)

    def table():
        return tracking.mlflow.client.load_table(
            tracking.mlflow.experiment_id, "evaluation.json", run_ids=[stage.run]
        )

    stage.promote("a" * 64)
    assert [*table().columns] == ["title", "held_out", "categories", "quality", "nearest"]
    stage.promote("b" * 64)
    rows = table()
    assert {"champion_quality", "champion_nearest", "verdict"} < {*rows.columns} and 2 < len(rows) <= 100
    assert {*rows["verdict"]} == {"same"} and [*rows["nearest"]] == [*rows["champion_nearest"]]
    near = rows["nearest"][0].split("; ")
    assert len(near) == 5 and all(line.endswith(")") and float(line[-5:-1]) <= 1 for line in near)
    stage.promote("b" * 64)  # the champion adds no rows
    assert len(table()) == len(rows)


def test_the_reference_is_the_oldest_promoted_model_with_files(stage, monkeypatch):
    """The fourth night is compared with the first; without the files of the first, with the second."""
    lineage = stage.registry.lineage_of
    for digest in "abc":
        assert stage.promote(digest * 64).champion
    oldest = stage.registry.oldest_promoted(lineage("1")[0])
    assert oldest is not None and (oldest.version, oldest.digest) == ("1", "a" * 64)
    scored = []
    score_model = QualityScorer.score_model
    monkeypatch.setattr(
        QualityScorer,
        "score_model",
        lambda self, model, *same: (scored.append(model), score_model(self, model, *same))[1],
    )
    assert stage.promote("d" * 64).champion
    assert len(scored) == 2 and scored[1] == oldest.folder
    shutil.rmtree(oldest.folder.parents[1])
    second = stage.registry.oldest_promoted(lineage("1")[0])
    assert second is not None and second.version == "2"
    assert stage.registry.oldest_promoted("another lineage") is None


def test_a_guide_with_more_feeds_is_compared(stage, monkeypatch):
    from tasks.publish.registry.lineage import feed_fingerprints

    stage.promote("a" * 64)
    monkeypatch.setattr("tasks.publish.registry.task.lineage_id", lambda salt, sources: "of-more-feeds")
    monkeypatch.setattr(
        "tasks.publish.registry.task.feed_fingerprints",
        lambda salt, sources: feed_fingerprints(salt, [*sources, "more.xml"]),
    )
    verdict = stage.promote("b" * 64)
    assert verdict.champion and verdict.difference == 0


@pytest.mark.slow
def test_promote_first_promotes_only_the_first_model(stage):
    assert stage.promote("a" * 64, promote="first").champion
    verdict = stage.promote("b" * 64, promote="first")
    assert not verdict.champion and stage.registry.champion().version == "1"
    assert verdict.reason.startswith("publish.promote is first; the gate decided: not shown to be worse")
    stage.registry.mlflow.client.delete_registered_model_alias(stage.registry.name, "champion")
    assert not stage.promote("b" * 64, promote="first").champion


@pytest.mark.slow
def test_a_champion_without_files_is_not_replaced(stage):
    stage.promote("a" * 64)
    shutil.rmtree(stage.home / "mlflow" / "models")
    verdict = stage.promote("b" * 64)
    assert not verdict.champion and "has no files in" in verdict.reason
    assert stage.promote("b" * 64, promote="always").champion and stage.registry.champion().version == "2"


@pytest.mark.slow
def test_a_removed_alias_is_not_set_again(stage):
    stage.promote("a" * 64)
    stage.registry.mlflow.client.delete_registered_model_alias(stage.registry.name, "champion")
    verdict = stage.promote("b" * 64)
    reason = "the alias champion of guidespace-titles, last on version 1, was removed"
    assert not verdict.champion and reason in verdict.reason


@pytest.mark.parametrize(("setting", "champion"), [("always", "2"), ("never", "1")])
def test_the_setting_overrides_the_gate(stage, setting, champion):
    stage.promote("a" * 64)
    if setting == "always":
        damage(stage.registry)
    verdict = stage.promote("b" * 64, promote=setting)
    assert stage.registry.champion().version == champion and verdict.champion == (champion == "2")
    assert verdict.reason.startswith(f"publish.promote is {setting}; the gate decided: ")


def test_promotion_settings_are_not_part_of_the_page_key(published):
    from tasks.publish.task import PAGE

    changes = {}, {"promote": "always"}, {"registered_model": "x"}, {"keep": 3}
    keys = {PAGE.key(published[2], replace(SETTINGS, **change)) for change in changes}
    assert len(keys) == 1 and PAGE.key(published[2], replace(SETTINGS, heading="x")) not in keys


def test_versions_have_tags_and_a_description(stage):
    verdict = stage.promote("a" * 64)
    version = stage.registry.mlflow.client.get_model_version(verdict.name, verdict.version)
    names = "model content lineage feeds home logged_model promoted_at reason score.quality"
    assert set(version.tags) == {f"guidespace.{name}" for name in names.split()}
    assert version.description.startswith("Champion since ") and verdict.reason in version.description
    damage(stage.registry)
    refused = stage.promote("b" * 64)
    tags = stage.registry.mlflow.client.get_model_version(refused.name, refused.version).tags
    assert tags["guidespace.reason"] == refused.reason and "guidespace.promoted_at" not in tags
    assert stage.registry.mlflow.client.get_model_version(
        refused.name, refused.version
    ).description.startswith("Not promoted on ")
    model = stage.registry.mlflow.client.get_logged_model(verdict.logged_model)
    assert model.params == {"train.epochs": "6"}
