"""Removal of old models and runs from MLflow; the champion and versions for a rollback remain."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from storage.home.files import folder_size
from storage.tracking import MODEL_NAME, Registry, Tracking
from storage.tracking.retention import prune_model_versions, prune_runs

from .test_tracking_registry import NIGHT, STAND_IN, register

LATER = datetime.now(UTC) + timedelta(days=1)


@pytest.fixture(scope="module")
def seven(made_home: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A home and the run ids of its seven nights, a version each; all but 4 and 6 were promoted, then 2 was
    given the alias."""
    home, models = tmp_path_factory.mktemp("nights") / "home", tmp_path_factory.mktemp("models")
    shutil.copytree(made_home, home)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        tracking, registry, runs = Tracking(home), Registry(home, code=STAND_IN), []
        for night in range(1, 8):
            runs.append(run := tracking.start_run(f"flow-{night}", f"night {night}"))
            tracking.log_text(run, "x" * 1000, "report.txt")
            version = register(registry, run, models, f"{night}" * 3)
            if night not in (4, 6):
                at = NIGHT + timedelta(days=night)
                registry.promote(version, "better", at=at, quality=0.5 + night / 100)
            tracking.end_run(run)
        tracking.mlflow.client.set_registered_model_alias(MODEL_NAME, "champion", "2")
    return home, runs


@pytest.fixture
def mlflow_home(seven: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return Path(shutil.copytree(seven[0], tmp_path / "home"))


@pytest.fixture
def nights(seven: tuple[Path, list[str]]) -> list[str]:
    return seven[1]


def versions(tracking: Tracking) -> dict[str, bool]:
    """Maps each version number to whether its files exist."""
    found = tracking.mlflow.client.search_model_versions(f"name = '{MODEL_NAME}'")
    return {
        str(one.version): Path(str(one.source)).is_dir()
        for one in sorted(found, key=lambda v: int(v.version))
    }


def test_the_champion_and_the_last_promoted_stay(
    tracking: Tracking, registry: Registry, nights: list[str], mlflow_home: Path
) -> None:
    before = registry.promoted()
    told, size = prune_model_versions(registry, 2, dry_run=True), folder_size(mlflow_home / "mlflow")
    assert all(versions(tracking).values()) and len(versions(tracking)) == 7
    removed = prune_model_versions(registry, 2)
    # 2 serves; 6 and 7 are the newest; 5 and 7 were promoted last; 4 never was
    assert versions(tracking) == {"1": False, "2": True, "3": False, "5": True, "6": True, "7": True}
    assert removed == told and removed.count == 3
    assert removed.bytes == size - folder_size(mlflow_home / "mlflow") > 0
    assert registry.promoted() == before  # what the gate compares with
    champion = registry.champion()
    assert champion is not None and champion.version == "2"
    assert prune_model_versions(registry, 2).count == 0


def test_a_model_with_removed_files_is_registered_again(
    tracking: Tracking, registry: Registry, nights: list[str], tmp_path: Path, mlflow_home: Path
) -> None:
    prune_model_versions(Registry(mlflow_home), 1)
    assert register(registry, nights[0], tmp_path, "111") == "8"
    assert register(registry, nights[0], tmp_path, "222") == "2"


@pytest.mark.parametrize("call", ["set_model_version_tag", "delete_logged_model", "delete_model_version"])
def test_a_killed_clean_up_is_finished_by_the_next(
    tracking: Tracking, nights: list[str], mlflow_home: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    killed, made = Registry(mlflow_home), getattr(tracking.mlflow.client, call)

    def then_dies(*arguments: object) -> None:
        made(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(killed.mlflow.client, call, then_dies)
    with pytest.raises(KeyboardInterrupt):
        prune_model_versions(killed, 2)
    prune_model_versions(Registry(mlflow_home), 2)
    assert versions(tracking) == {"1": False, "2": True, "3": False, "5": True, "6": True, "7": True}
    assert len(list((mlflow_home / "mlflow" / "models").glob("*/artifacts/MLmodel"))) == 4


def test_a_model_without_a_version_is_removed(
    tracking: Tracking, registry: Registry, nights: list[str], tmp_path: Path, mlflow_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def dies(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(registry.mlflow.client, "create_model_version", dies)
    with pytest.raises(KeyboardInterrupt):
        register(registry, nights[0], tmp_path, "888")
    copy = Path(shutil.copytree(mlflow_home, tmp_path / "copy"))
    for home in (mlflow_home, copy):
        removed = prune_model_versions(Registry(home), 7)
        assert removed.count == 1 and removed.bytes > 0
        assert len(list((home / "mlflow" / "models").glob("*/artifacts/MLmodel"))) == 7


def test_old_runs_are_removed_except_those_of_remaining_models(
    tracking: Tracking, nights: list[str], mlflow_home: Path
) -> None:
    running = tracking.start_run("flow-9", "at work")
    by_hand = tracking.mlflow.client.create_run(tracking.mlflow.experiment_id).info.run_id
    tracking.mlflow.client.set_terminated(by_hand)
    registry = Registry(mlflow_home)
    assert prune_runs(registry, NIGHT - timedelta(days=900), 2).count == 0
    assert prune_runs(registry, LATER, 2, dry_run=True).count == 3
    removed = prune_runs(registry, LATER, 2)
    assert (removed.count, removed.bytes) == (3, 3000)
    left = {run.info.run_id for run in tracking.mlflow.client.search_runs([tracking.mlflow.experiment_id])}
    assert left == {running, by_hand, *(nights[number - 1] for number in (2, 5, 6, 7))}
    assert len(list((mlflow_home / "mlflow").rglob("report.txt"))) == 4
