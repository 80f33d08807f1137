"""MLflow in a home of its own, without a server."""

import shutil
from pathlib import Path

import pytest

from storage.tracking import Registry, Tracking

STAND_IN = Path(__file__).with_name("served_stand_in.py")


@pytest.fixture(scope="session")
def made_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with MLflow's tables; a test works on a copy, for making them takes a second."""
    home = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        Tracking(home).experiment_id  # noqa: B018
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
