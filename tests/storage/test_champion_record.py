"""champion.json, by which readers without MLflow find the champion of a server."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from storage.home.retention import prune_downloaded_models
from storage.home.workspace import Workspace
from storage.tracking import Registry, Tracking, TrackingError
from storage.tracking import registry as module
from storage.tracking.champion import LocatedVersion, open_version
from storage.tracking.connection import MlflowConnection

STAND_IN = Path(__file__).with_name("served_stand_in.py")
NIGHT = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)


def promote(home: Path, folder: Path, digest: str) -> Registry:
    """Registers a model of one file and promotes it; returns the registry."""
    tracking, registry = Tracking(home), Registry(home, code=STAND_IN)
    (folder / digest).mkdir()
    (folder / digest / "vectors.npy").write_text(digest, encoding="utf-8")
    run_id = tracking.start_run(f"flow-{digest}", "night")
    version = registry.register(run_id, folder / digest, digest, example_title="News", lineage="salt")
    registry.promote(version, "not worse", at=NIGHT)
    tracking.end_run(run_id)
    return registry


def read_without_mlflow(home: Path) -> str:
    """Returns the digest of the champion for a process that has neither MLflow nor its variables."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        patch.setattr(module, "is_installed", lambda package: False)
        champion = Registry(home).champion()
    assert champion is not None and (champion.folder / "vectors.npy").read_text("utf-8") == champion.digest
    return champion.digest


@pytest.mark.slow
def test_the_record_follows_the_alias_of_another_database(
    mlflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    record = mlflow_home / "champion.json"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'shared.db'}")
    promote(mlflow_home, tmp_path, "first")
    registry = promote(mlflow_home, tmp_path, "second")
    assert read_without_mlflow(mlflow_home) == "second"
    registry.rollback(at=NIGHT)
    assert read_without_mlflow(mlflow_home) == "first"
    registry.mlflow.client.set_registered_model_alias(registry.name, "champion", "2")  # as MLflow's page does
    assert read_without_mlflow(mlflow_home) == "first"  # until a process asks the database
    assert registry.champion() is not None and read_without_mlflow(mlflow_home) == "second"
    before = record.stat().st_mtime_ns
    assert registry.champion() is not None and record.stat().st_mtime_ns == before

    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    assert Registry(mlflow_home).champion() is None  # mlflow.db has none, and MLflow decides
    promote(mlflow_home, tmp_path, "newer")
    assert not record.exists() and read_without_mlflow(mlflow_home) == "newer"


@pytest.mark.slow
def test_a_recorded_home_can_be_moved_and_changed_files_are_an_error(
    mlflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'shared.db'}")
    promote(mlflow_home, tmp_path, "first")
    moved = Path(shutil.move(mlflow_home, tmp_path / "moved"))
    assert read_without_mlflow(moved) == "first"
    location = json.loads((moved / "champion.json").read_text(encoding="utf-8"))["location"]
    (file,) = (moved / location).rglob("vectors.npy")
    file.write_text("other", encoding="utf-8")
    with pytest.raises(TrackingError, match="was changed after its registration"):
        read_without_mlflow(moved)


def test_versions_without_a_digest_are_downloaded_once_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources: list[str] = []

    def download(source: str, dst_path: str, **_: str) -> str:
        sources.append(source)
        (Path(dst_path) / "model" / "artifacts" / "titles").mkdir(parents=True)
        return f"{dst_path}/model"

    monkeypatch.setattr("mlflow.artifacts.download_artifacts", download)
    connection = MlflowConnection(tmp_path)
    (tmp_path / "champions" / ("a" * 16)).mkdir(parents=True)
    first, second, again = (
        open_version(connection, name, LocatedVersion("1", "", "", "mlflow-artifacts:/1"))
        for name in ("films", "news", "films")
    )
    assert sources == ["models:/films/1", "models:/news/1"]
    assert first == again and first.folder != second.folder
    assert prune_downloaded_models(Workspace(tmp_path), first.folder).count == 2 and first.folder.is_dir()
