"""Tracking and Registry with an MLflow server at MLFLOW_TRACKING_URI."""

import os
import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from storage.home.workspace import Workspace
from storage.tracking import Registry, Tracking, TrackingError
from tests.ports import free_port
from tests.servers import is_healthy, running, wait_for

STAND_IN = Path(__file__).with_name("served_stand_in.py")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    place, port = tmp_path_factory.mktemp("server"), free_port()
    command = [sys.executable, "-m", "mlflow", "server", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{place / 'mlflow.db'}"]
    command += ["--artifacts-destination", str(place / "artifacts")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
    environment["MLFLOW_DISABLE_TELEMETRY"] = "true"
    environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    log, url = place / "server.log", f"http://127.0.0.1:{port}"
    with running(command, log, environment, place):
        wait_for(lambda: is_healthy(f"{url}/health"), 120, lambda: log.read_text(encoding="utf-8"))
        yield url


@pytest.mark.slow
def test_a_server_keeps_runs_and_models(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server)
    home = tmp_path / "home"
    tracking, registry = Tracking(home), Registry(home, code=STAND_IN)
    assert registry.champion() is None
    run_id = tracking.start_run("flow-1", "friday", {"preset": "smoke"}, {"train": {"epochs": 6}})
    assert tracking.start_run("flow-1", "friday") == run_id
    tracking.log_steps(run_id, ((step, {"loss": 1 / (step + 1)}) for step in range(1500)))
    tracking.log_feeds(run_id, [{"source": "za.xml", "content_digest": "ab" * 32, "seen": 4}])
    model = tmp_path / "model"
    model.mkdir()
    (model / "vectors.npy").write_text("aaa", encoding="utf-8")
    tracking.log_folder(run_id, model, "plots")
    versions = [
        registry.register(run_id, model, "digest-a", example_title="News", lineage="salt-1") for _ in range(2)
    ]
    assert versions == ["1", "1"]
    registry.promote("1", "the first", at=datetime(2026, 11, 21, tzinfo=UTC), quality=0.5)
    tracking.end_run(run_id)

    run = tracking.mlflow.client.get_run(run_id)
    assert run.info.status == "FINISHED"
    assert len(tracking.mlflow.client.get_metric_history(run_id, "loss")) == 1500
    assert [item.dataset.digest for item in run.inputs.dataset_inputs] == ["ab" * 18]
    assert [item.path for item in tracking.mlflow.client.list_artifacts(run_id, "plots")] == [
        "plots/vectors.npy"
    ]
    assert len(run.outputs.model_outputs) == 1
    assert tracking.run_location(run_id).startswith(f"{server}/#/experiments/")
    assert registry.promoted() == [("1", 0.5)]
    assert registry.mlflow.client.get_model_version(registry.name, "1").tags["guidespace.model"] == "digest-a"

    champion = Registry(home).champion()
    assert champion is not None and (champion.version, champion.digest) == ("1", "digest-a")
    assert (champion.folder / "vectors.npy").read_text(encoding="utf-8") == "aaa"
    assert champion.folder.is_relative_to(home)
    fetched = champion.folder.stat().st_mtime_ns
    again = Registry(home).champion()
    assert again == champion and again.folder.stat().st_mtime_ns == fetched
    assert not (home / "mlflow.db").exists()
    registry.mlflow.client.delete_registered_model_alias(registry.name, "champion")
    assert registry.champion() is None


def a_model(home: Path, content: str, digest: str) -> Path:
    """Publishes a Model folder in the home, as the stage does, with its digest in artifact.json."""
    folder = home / "artifacts" / "model" / content
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vectors.npy").write_text(content, encoding="utf-8")
    (folder / "artifact.json").write_text(f'{{"digest": "{digest}"}}', encoding="utf-8")
    return folder


def register(home: Path, content: str, name: str | None = None) -> str:
    """Registers and promotes a model in a night of a home; returns the version."""
    Workspace(home)
    registry = Registry(home, code=STAND_IN, name=name)
    run_id = Tracking(home).start_run(f"flow of {home} {content}", "night")
    version = registry.register(
        run_id, a_model(home, content, content * 4), content * 4, example_title="News", lineage="salt-1"
    )
    registry.promote(version, "better", at=datetime(2026, 11, 21, int(version), tzinfo=UTC), quality=0.5)
    Tracking(home).end_run(run_id)
    return version


def serves(home: Path) -> str | None:
    """Returns the content of the model that serves a home."""
    champion = Registry(home).champion()
    return champion and (champion.folder / "vectors.npy").read_text(encoding="utf-8")


@pytest.mark.slow
def test_two_homes_on_one_server_never_mix(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server)
    production, smoke = (
        tmp_path / "production" / "home",
        tmp_path / "smoke" / "home",
    )  # the folder's name alone does not tell them apart
    assert [register(production, content) for content in ("first", "second")] == ["1", "2"]
    assert register(smoke, "smoke") == "1"
    assert (serves(production), serves(smoke)) == ("second", "smoke")
    names = {Registry(home).name for home in (production, smoke)}
    assert len(names) == 2 and all(name.startswith("guidespace-titles-home-") for name in names)

    runs = {home: Tracking(home).start_run(f"under way in {home}", "night") for home in (production, smoke)}
    silent = Tracking(production).start_run(f"dead in {production}", "night")
    assert Tracking(production).close_stale_runs(runs[production]) == [silent]
    assert [Tracking(home).mlflow.client.get_run(run).info.status for home, run in runs.items()] == [
        "RUNNING",
        "RUNNING",
    ]

    moved = production.rename(tmp_path / "elsewhere")
    assert (serves(moved), register(moved, "third")) == ("second", "3")
    copy = Path(shutil.copytree(smoke, tmp_path / "copy" / "home"))
    assert serves(copy) is None
    assert register(copy, "copied") == "1"
    assert (serves(copy), serves(smoke)) == ("copied", "smoke")


@pytest.mark.slow
def test_a_chosen_name_belongs_to_one_home(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server)
    one, other = tmp_path / "one", tmp_path / "other"
    register(one, "first", "our titles")
    assert (Registry(one).name, serves(one)) == ("our titles", "first")  # readers know it from home.json
    with pytest.raises(
        TrackingError,
        match=r"our titles in this MLflow belongs to the home one-\w{8}; .*/other is other-\w{8}.*"
        r"publish\.registered_model",
    ):
        register(other, "other", "our titles")
    assert (serves(one), serves(other)) == ("first", None)
    register(one, "default", "")
    assert Registry(one).name.startswith("guidespace-titles-one-") and serves(one) == "default"
