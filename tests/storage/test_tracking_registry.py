"""The registry with MLflow on SQLite: versions, champion, moved homes."""

import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from storage.digests import content_digest
from storage.tracking import EXPERIMENT, MODEL_NAME, Registry, Tracking, TrackingError
from storage.tracking.champion import read_champion

STAND_IN = Path(__file__).with_name("served_stand_in.py")
NIGHT = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)


def model_folder(parent: Path, content: str) -> Path:
    folder = parent / content
    folder.mkdir(parents=True)
    (folder / "vectors.npy").write_text(content, encoding="utf-8")
    return folder


def register(registry: Registry, run_id: str, parent: Path, digest: str) -> str:
    folder = parent / digest if (parent / digest).exists() else model_folder(parent, digest)
    return registry.register(run_id, folder, digest, example_title="Evening News", lineage="salt-1")


def test_figures_parameters_and_dataset_lead_to_the_logged_model(
    tracking: Tracking, registry: Registry, tmp_path: Path
) -> None:
    run_id = tracking.start_run("flow-1", "night", params={"train": {"epochs": 6}})
    model_id = registry.logged_model(register(registry, run_id, tmp_path, "aaa"))
    snapshot = tracking.log_snapshot(run_id, "cd" * 32, tmp_path, {"programmes": 12})
    tracking.log_figures(run_id, {"quality": 0.5, "clusters": 12.0}, model_id, snapshot)
    assert tracking.mlflow.client.get_run(run_id).data.metrics == {
        "at_a_glance/quality": 0.5,
        "at_a_glance/clusters": 12.0,
    }
    model = tracking.mlflow.client.get_logged_model(model_id)
    assert model.params == {"train.epochs": "6"} and model.source_run_id == run_id
    metrics = {(one.key, one.value, one.dataset_name, one.dataset_digest) for one in model.metrics}
    figures = {("at_a_glance/quality", 0.5), ("at_a_glance/clusters", 12.0)}
    assert metrics == {(*figure, "guide", "cd" * 18) for figure in figures}
    found = tracking.mlflow.client.search_logged_models(
        [tracking.mlflow.experiment_id],
        "metrics.`at_a_glance/quality` > 0.4",
        datasets=[{"dataset_name": "guide"}],
    )
    assert [one.model_id for one in found] == [model_id]


def test_no_champion_in_a_new_home(tmp_path: Path) -> None:
    assert Registry(tmp_path / "new").champion() is None
    assert not (tmp_path / "new").exists()


def test_the_same_model_is_one_version(tracking: Tracking, registry: Registry, tmp_path: Path) -> None:
    first, second = tracking.start_run("flow-1", "friday"), tracking.start_run("flow-2", "saturday")
    assert registry.champion() is None
    assert register(registry, first, tmp_path, "aaa") == "1"
    assert register(registry, second, tmp_path, "aaa") == "1"
    assert register(registry, second, tmp_path, "bbb") == "2"
    client = tracking.mlflow.client
    assert client.get_model_version_by_alias(MODEL_NAME, "challenger").version in (2, "2")
    models = {
        run: {output.model_id for output in client.get_run(run).outputs.model_outputs}
        for run in (first, second)
    }
    assert len(models[first]) == 1 and len(models[second]) == 2 and models[first] < models[second]
    assert registry.champion() is None


def test_promotion_and_rollback(tracking: Tracking, registry: Registry, tmp_path: Path) -> None:
    run_id = tracking.start_run("flow-1", "friday")
    for day, digest in enumerate(("aaa", "bbb", "ccc")):
        version = register(registry, run_id, tmp_path, digest)
        registry.promote(version, f"not worse on day {day}", at=NIGHT + timedelta(days=day), quality=0.5)
    champion = registry.champion()
    assert champion is not None and (champion.version, champion.digest) == ("3", "ccc")
    assert (champion.folder / "vectors.npy").read_text(encoding="utf-8") == "ccc"
    assert registry.promoted() == registry.promoted("salt-1") == [("3", 0.5), ("2", 0.5), ("1", 0.5)]
    assert registry.promoted(limit=1) == [("3", 0.5)] and registry.promoted("salt-2") == []
    tags = tracking.mlflow.client.get_model_version(MODEL_NAME, "3").tags
    assert (tags["guidespace.model"], tags["guidespace.lineage"]) == ("ccc", "salt-1")
    assert tags["guidespace.reason"] == "not worse on day 2"
    assert tags["guidespace.promoted_at"] == "2026-11-23T03:00:00+00:00"
    # What a person does in MLflow's page:
    tracking.mlflow.client.set_registered_model_alias(MODEL_NAME, "champion", "1")
    back = registry.champion()
    assert back is not None and (back.version, back.digest) == ("1", "aaa")
    tracking.mlflow.client.delete_registered_model_alias(MODEL_NAME, "champion")
    assert registry.champion() is None


def test_rollbacks_restore_earlier_champions_one_by_one(
    tracking: Tracking, registry: Registry, tmp_path: Path
) -> None:
    with pytest.raises(TrackingError, match="no version of guidespace-titles is champion"):
        registry.rollback(at=NIGHT)
    run_id = tracking.start_run("flow-1", "friday")
    for day, digest in enumerate(("aaa", "bbb", "ccc", "ddd")):
        version = register(registry, run_id, tmp_path, digest)
        if digest != "ccc":  # the gate refused that one
            registry.promote(version, "not worse", at=NIGHT + timedelta(days=day), quality=0.5)
    registry.refuse("3", "worse than the champion")
    assert (
        tracking.mlflow.client.get_model_version(MODEL_NAME, "3")
        .tags["guidespace.reason"]
        .startswith("worse")
    )
    assert registry.rollback(at=NIGHT + timedelta(days=9)) == ("4", "2")
    champion = registry.champion()
    assert champion is not None and champion.digest == "bbb"
    assert registry.rollback_day("4") == "2026-11-30" and registry.rollback_day("2") == ""
    assert registry.promoted() == [("2", 0.5), ("1", 0.5)]
    assert registry.rollback(at=NIGHT) == ("2", "1")
    with pytest.raises(TrackingError, match="was promoted before version 1; it stays champion"):
        registry.rollback(at=NIGHT)
    registry.promote("4", "by a person", at=NIGHT + timedelta(days=10))
    assert registry.rollback_day("4") == "" and registry.promoted(limit=1) == [("4", 0.5)]


def test_a_rollback_skips_versions_without_files(
    tracking: Tracking, registry: Registry, tmp_path: Path
) -> None:
    run_id, places = tracking.start_run("flow-1", "friday"), []
    for day, digest in enumerate(("aaa", "bbb", "ccc")):
        version = register(registry, run_id, tmp_path, digest)
        registry.promote(version, "not worse", at=NIGHT + timedelta(days=day))
        champion = registry.champion()
        assert champion is not None
        places.append(champion.folder.parents[1])
    shutil.rmtree(places[1])
    assert registry.rollback(at=NIGHT) == ("3", "1")


def test_a_model_card_follows_the_description_and_is_replaced(
    tracking: Tracking, registry: Registry, tmp_path: Path
) -> None:
    version = register(registry, tracking.start_run("flow-1", "friday"), tmp_path, "aaa")
    registry.describe(version, "Champion since Friday.")
    registry.add_card(version, "## Model card\n\nmade of one feed")
    registry.add_card(version, "## Model card\n\n" + "x" * 6000)
    text = tracking.mlflow.client.get_model_version(MODEL_NAME, version).description
    assert text.startswith("Champion since Friday.\n\n## Model card\n\nxxx") and len(text) == 5000


def test_a_chosen_model_name_is_stored_in_the_home(
    tracking: Tracking, registry: Registry, tmp_path: Path, mlflow_home: Path
) -> None:
    chosen = Registry(mlflow_home, code=STAND_IN, name="our titles")
    chosen.promote(
        register(chosen, tracking.start_run("flow-1", "friday"), tmp_path, "aaa"), "the first", at=NIGHT
    )
    reader = Registry(mlflow_home).champion()
    assert reader is not None and reader.digest == "aaa" and Registry(mlflow_home).name == "our titles"
    assert (
        Registry(mlflow_home, name="").champion() is None
        and Registry(mlflow_home, name="").name == MODEL_NAME
    )


def test_the_database_of_the_home_uses_the_default_model_name(
    tracking: Tracking, mlflow_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tracking.mlflow.uri)
    assert Registry(mlflow_home).name == MODEL_NAME
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:5000")
    assert Registry(mlflow_home).name != MODEL_NAME


def test_the_database_and_mlflow_name_the_same_champion(
    tracking: Tracking, registry: Registry, tmp_path: Path
) -> None:
    version = register(registry, tracking.start_run("flow-1", "friday"), tmp_path, "aaa")
    registry.promote(version, "the first", at=NIGHT)
    read = read_champion(tracking.mlflow.database, MODEL_NAME)
    assert read is not None and read[2] == content_digest(tmp_path / "aaa")
    told = tracking.mlflow.client.get_model_version_by_alias(MODEL_NAME, "champion")
    assert read == (
        str(told.version),
        "aaa",
        told.tags["guidespace.content"],
        tracking.mlflow.client.get_model_version_download_uri(MODEL_NAME, told.version),
    )


def test_a_champion_that_was_changed_is_refused(
    tracking: Tracking, registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    version = register(registry, tracking.start_run("flow-1", "friday"), tmp_path, "aaa")
    registry.promote(version, "the first", at=NIGHT)
    champion = registry.champion()
    assert champion is not None
    file, times = champion.folder / "vectors.npy", (1.0, 1.0)
    os.utime(file, times)
    assert registry.champion() == champion  # and its digest is cached
    file.write_text("bbb", encoding="utf-8")
    os.utime(file, times)
    with pytest.raises(TrackingError, match="version 1 of guidespace-titles, was changed after"):
        registry.champion()
    file.write_text("aaa", encoding="utf-8")
    assert registry.champion() == champion
    (champion.folder / "more.npy").write_text("", encoding="utf-8")
    with pytest.raises(TrackingError, match="was changed after"):
        registry.champion()


def test_a_champion_without_files_is_an_error_and_can_be_registered_again(
    tracking: Tracking, registry: Registry, tmp_path: Path, mlflow_home: Path
) -> None:
    run_id = tracking.start_run("flow-1", "friday")
    registry.promote(register(registry, run_id, tmp_path, "aaa"), "the first", at=NIGHT)
    shutil.rmtree(mlflow_home / "mlflow" / "models")
    with pytest.raises(TrackingError, match="guidespace nightly"):
        registry.champion()
    assert register(registry, run_id, tmp_path, "aaa") == "2"


def test_a_moved_home_keeps_its_champion(
    tracking: Tracking, registry: Registry, tmp_path: Path, mlflow_home: Path
) -> None:
    run_id = tracking.start_run("flow-1", "friday")
    tracking.log_file(run_id, STAND_IN)
    registry.promote(register(registry, run_id, tmp_path, "aaa"), "the first", at=NIGHT)
    moved = mlflow_home.rename(tmp_path / "moved")
    champion = Registry(moved).champion()
    assert champion is not None and champion.folder.is_relative_to(moved)
    assert (champion.folder / "vectors.npy").read_text(encoding="utf-8") == "aaa"
    after = Tracking(moved)
    assert [item.path for item in after.mlflow.client.list_artifacts(run_id)] == [STAND_IN.name]
    assert (
        Registry(moved, code=STAND_IN).register(
            run_id, tmp_path / "aaa", "aaa", example_title="News", lineage="salt-1"
        )
        == "1"
    )
    after.log_file(after.start_run("flow-2", "saturday"), STAND_IN)
    assert not mlflow_home.exists()


def test_a_copied_home_does_not_change_the_original(
    tracking: Tracking, registry: Registry, tmp_path: Path, mlflow_home: Path
) -> None:
    registry.promote(
        register(registry, tracking.start_run("flow-1", "friday"), tmp_path, "aaa"), "the first", at=NIGHT
    )
    copy = Path(shutil.copytree(mlflow_home, tmp_path / "copy"))
    for place in (copy, mlflow_home):
        champion = Registry(place).champion()
        assert champion is not None and champion.folder.is_relative_to(place)
        assert Tracking(place).mlflow.client.get_experiment_by_name(EXPERIMENT).artifact_location == str(
            place / "mlflow"
        )
