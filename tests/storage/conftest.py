"""Fixtures: MLflow in a temporary home without a server, and a disk that is nearly full."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.tracking import Registry, Tracking

STAND_IN = Path(__file__).with_name("served_stand_in.py")


@pytest.fixture(scope="session")
def made_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Home with MLflow's tables; tests use a copy, because creating the tables takes a second."""
    home = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        Tracking(home).mlflow.experiment_id  # noqa: B018
    return home


@pytest.fixture
def mlflow_home(made_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return Path(shutil.copytree(made_home, tmp_path / "home"))


@pytest.fixture
def tracking(mlflow_home: Path) -> Tracking:
    return Tracking(mlflow_home)


@pytest.fixture
def registry(mlflow_home: Path) -> Registry:
    return Registry(mlflow_home, code=STAND_IN)


@pytest.fixture
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """File system of 1 MiB."""
    place = tmp_path_factory.mktemp("small")
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    mounted = subprocess.run(mount, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"mounting a small tmpfs is not permitted here: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)
