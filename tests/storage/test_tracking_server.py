"""Tracking and Registry against an MLflow server: everything by MLFLOW_TRACKING_URI, nothing of MLflow's in the home."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from storage.tracking import MODEL_NAME, Registry, Tracking

STAND_IN = Path(__file__).with_name("served_stand_in.py")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    place = tmp_path_factory.mktemp("server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{place / 'mlflow.db'}", "--artifacts-destination", str(place / "artifacts")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
    environment |= {"MLFLOW_DISABLE_TELEMETRY": "true", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    log = place / "server.log"
    with open(log, "w") as output:
        process = subprocess.Popen(command, cwd=place, env=environment, stdout=output, stderr=output, start_new_session=True)
    try:
        deadline = time.monotonic() + 120
        while not answers(f"http://127.0.0.1:{port}/health"):
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"mlflow server did not come up:\n{log.read_text()[-4000:]}")
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.status == 200
    except OSError:
        return False


@pytest.mark.slow
def test_a_server_keeps_runs_and_models(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server)
    home = tmp_path / "home"
    tracking, registry = Tracking(home), Registry(home, code=STAND_IN)
    assert registry.champion() is None
    run_id = tracking.start_run("flow-1", "friday", {"preset": "smoke"}, {"train": {"epochs": 6}})
    assert tracking.start_run("flow-1", "friday") == run_id
    with tracking.buffer(run_id) as buffer:
        for step in range(1500):
            buffer.log(step, {"loss": 1 / (step + 1)})
    tracking.log_feeds(run_id, [{"source": "za.xml", "content_digest": "ab" * 32, "seen": 4}])
    model = tmp_path / "model"
    model.mkdir()
    (model / "vectors.npy").write_text("aaa")
    tracking.log_folder(run_id, model, "plots")
    versions = [registry.register(run_id, model, "digest-a", example_title="News", lineage="salt-1") for _ in range(2)]
    assert versions == ["1", "1"]
    registry.promote("1", "the first", at=datetime(2026, 11, 21, tzinfo=UTC), scores={"clusters": {"ari": 0.5}})
    tracking.end_run(run_id)

    run = tracking.client.get_run(run_id)
    assert run.info.status == "FINISHED"
    assert len(tracking.client.get_metric_history(run_id, "loss")) == 1500
    assert [item.dataset.digest for item in run.inputs.dataset_inputs] == ["ab" * 18]
    assert [item.path for item in tracking.client.list_artifacts(run_id, "plots")] == ["plots/vectors.npy"]
    assert len(run.outputs.model_outputs) == 1
    assert tracking.where(run_id).startswith(f"{server}/#/experiments/")
    (past,) = registry.promoted()
    assert (past.digest, past.scores) == ("digest-a", {"clusters/ari": 0.5})

    champion = Registry(home).champion()
    assert champion is not None and (champion.version, champion.digest) == ("1", "digest-a")
    assert (champion.folder / "vectors.npy").read_text() == "aaa"
    assert champion.folder.is_relative_to(home)
    fetched = champion.folder.stat().st_mtime_ns
    again = Registry(home).champion()
    assert again == champion and again.folder.stat().st_mtime_ns == fetched
    assert not (home / "mlflow.db").exists()
    registry.client.delete_registered_model_alias(MODEL_NAME, "champion")
    assert registry.champion() is None
