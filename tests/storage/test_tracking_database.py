"""MLFLOW_TRACKING_URI with a database: artifacts in the home, and passwords in no file."""

import contextlib
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from storage.tracking import Tracking
from storage.tracking.connection import MlflowConnection, TrackingError


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Database outside the home; its URI contains a value that stands for a password."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    uri = f"sqlite:///{tmp_path}/elsewhere/mlflow.db?cached_statements=4711"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    return uri


@pytest.mark.slow
def test_artifacts_of_another_database_are_in_the_home(database: str, tmp_path: Path) -> None:
    tracking = Tracking(tmp_path / "home")
    run_id = tracking.start_run("flow-1", "night")
    tracking.log_text(run_id, "a,b\n", "table.csv")
    (kept,) = (tmp_path / "home" / "mlflow").rglob("table.csv")
    assert kept.read_text(encoding="utf-8") == "a,b\n" and tracking.mlflow.client.get_run(
        run_id
    ).info.artifact_uri == str(kept.parent)
    assert not (tmp_path / "mlruns").exists() and not (tmp_path / "home" / "mlflow.db").exists()
    assert [item.path for item in tracking.mlflow.client.list_artifacts(run_id)] == ["table.csv"]


@pytest.mark.slow
def test_the_location_of_a_run_contains_no_password(database: str, tmp_path: Path) -> None:
    tracking = Tracking(tmp_path / "home")
    run_id = tracking.start_run("flow-1", "night")
    where = tracking.run_location(run_id)
    assert where.startswith('mlflow ui --backend-store-uri "$MLFLOW_TRACKING_URI"') and "4711" not in where
    with contextlib.closing(sqlite3.connect(tmp_path / "elsewhere" / "mlflow.db")) as connection:
        assert "4711" not in "\n".join(connection.iterdump())
    tracking.mlflow.client.delete_experiment(tracking.mlflow.experiment_id)
    with pytest.raises(
        TrackingError, match=r'MLFLOW_TRACKING_URI="\$MLFLOW_TRACKING_URI" mlflow experiments restore'
    ) as caught:
        Tracking(tmp_path / "home").mlflow.experiment_id  # noqa: B018
    assert "4711" not in str(caught.value)


@pytest.mark.slow
def test_a_second_home_copies_the_database_that_the_first_migrated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setattr("sys.prefix", str(tmp_path / "prefix"))
    schemas = []
    for name in ("first", "second"):
        tracking = Tracking(tmp_path / name)
        assert tracking.start_run("flow-1", "night")
        (default,) = tracking.mlflow.client.search_experiments(filter_string="name = 'Default'")
        assert default.artifact_location == str(tmp_path / name / "mlflow" / "0")
        with contextlib.closing(sqlite3.connect(tmp_path / name / "mlflow.db")) as connection:
            query = "SELECT type, name, sql FROM sqlite_master ORDER BY type, name"
            schemas.append(connection.execute(query).fetchall())
        monkeypatch.setattr("storage.database_templates.sqlite3", None)  # to keep another one would fail
    (kept,) = (tmp_path / "prefix" / "share" / "guidespace").iterdir()
    assert kept.name.startswith("mlflow-") and schemas[0] == schemas[1] and len(schemas[0]) > 50


@pytest.mark.parametrize(
    ("uri", "kept"),
    [
        ("postgresql+psycopg2://me:4711@db/mlflow", True),
        ("mysql://me:4711@db/mlflow", True),
        ("mssql+pyodbc://db", True),
        ("http://me:4711@host:5000", False),
        ("https://host/mlflow", False),
        ("databricks", False),
    ],
)
def test_which_store_keeps_artifacts_in_the_home(
    uri: str, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    assert MlflowConnection(tmp_path).stores_artifacts_in_home is kept
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    assert MlflowConnection(tmp_path).stores_artifacts_in_home


def test_the_page_of_a_run_on_a_server_has_no_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://me:4711@mlflow.example:8443/sub/?access_token=4711")
    tracking = Tracking(tmp_path)
    tracking.mlflow.__dict__["experiment_id"] = "1"  # no server is asked
    assert tracking.run_location("r1").startswith("https://mlflow.example:8443/sub/#/experiments/1/runs/r1")


@pytest.mark.slow
def test_a_home_with_a_partially_created_database_opens(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    program = f"from storage.tracking.connection import MlflowConnection; MlflowConnection({home!r}).client"
    (tmp_path / "temporary").mkdir()
    environment = os.environ | {"TMPDIR": str(tmp_path / "temporary")}
    process = subprocess.Popen([sys.executable, "-c", program], env=environment)
    deadline = time.monotonic() + 60
    half = 500_000  # bytes; 950,000 when complete
    while not any(file.stat().st_size > half for file in tmp_path.rglob("mlflow.db")):
        assert process.poll() is None and time.monotonic() < deadline
    process.kill()
    process.wait(10)
    experiments = MlflowConnection(home).client.search_experiments()
    assert [experiment.name for experiment in experiments] == ["Default"]
