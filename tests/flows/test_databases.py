"""``guidespace up`` on PostgreSQL and an object store, behind passwords: a night, its model elsewhere, gc."""

import json
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import httpx
import psutil
import pytest

from storage.home.latest import read_latest
from storage.tracking import Registry
from tests import object_store, postgres
from tests.flows.command import QUICK_NIGHT, guidespace
from tests.flows.serve_process import AT, STAND_IN, request_by_clients, serving
from tests.flows.up_process import Up, standing, until

pytestmark = pytest.mark.timeout(900)
slow, soak = pytest.mark.slow, pytest.mark.soak
HOST, USER, PASSWORD = "127.0.0.2", "ann", "a long password"  # no interface of this machine's default


@dataclass(frozen=True)
class Place:
    """What stands, after a smoke night."""

    up: Up
    bucket: Any
    database: str  # user:password@host:port
    night: str

    @property
    def home(self) -> Path:
        """Home of the nightly-smoke run."""
        return self.up.home / "smoke"

    @property
    def model(self) -> dict[str, Any]:
        """The registered model."""
        (model,) = self.mlflow("registered-models/search")["registered_models"]
        return model

    @property
    def client(self) -> dict[str, str]:
        """Environment variables of a client of MLflow."""
        login = {"MLFLOW_TRACKING_USERNAME": USER, "MLFLOW_TRACKING_PASSWORD": PASSWORD}
        return {"MLFLOW_TRACKING_URI": self.up.record["mlflow"], **login}

    def mlflow(self, path: str, **query: str) -> Any:
        """Sends a request to MLflow, and returns the answer."""
        url = f"{self.up.record['mlflow']}/api/2.0/mlflow/{path}"
        answer = httpx.get(url, params=query, auth=(USER, PASSWORD), timeout=30)
        assert answer.is_success, answer.text
        return answer.json()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    home = tmp_path_factory.mktemp("databases") / "home"
    with postgres.running("prefect", "mlflow") as database, object_store.bucket("guidespace") as bucket:
        servers = {
            "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"postgresql+asyncpg://{database}/prefect",
            "MLFLOW_BACKEND_STORE_URI": f"postgresql://{database}/mlflow",
            "MLFLOW_ARTIFACTS_DESTINATION": "s3://guidespace/mlflow",
            "PREFECT_SERVER_API_AUTH_STRING": f"{USER}:{PASSWORD}",
            "MLFLOW_AUTH_ADMIN_USERNAME": USER,
            "MLFLOW_AUTH_ADMIN_PASSWORD": PASSWORD,
        }
        with standing(home, "--host", HOST, auth=(USER, PASSWORD), **servers) as up:
            night = up.trigger("nightly-smoke", {"changes": list(QUICK_NIGHT)})
            up.wait(night)
            yield Place(up, bucket, database, night)


@slow
def test_a_night_is_in_the_databases_and_the_bucket(place: Place) -> None:
    assert place.model["name"].startswith("guidespace-titles-smoke-") and place.model["latest_versions"]
    (experiment,) = place.mlflow("experiments/get-by-name", experiment_name="guidespace").values()
    assert experiment["artifact_location"].startswith("mlflow-artifacts:/")
    files = place.bucket.find("guidespace/mlflow")
    assert {"map.html", "MLmodel", "similarity.npy"} <= {file.rpartition("/")[2] for file in files}
    assert not any((home / "mlflow").exists() for home in (place.up.home, place.home))
    dump = [postgres.find_program("pg_dump"), "--data-only", "--table=flow_run"]
    done = subprocess.run(
        [*dump, f"postgresql://{place.database}/prefect"], capture_output=True, encoding="utf-8"
    )
    assert place.night in done.stdout, done.stderr


@slow
def test_requests_without_the_password_get_401(place: Place) -> None:
    record = place.up.record
    for url in (
        f"{record['prefect']}/api/admin/version",
        f"{record['mlflow']}/api/2.0/mlflow/registered-models/search",
    ):
        assert [httpx.get(url, auth=auth).status_code for auth in (None, (USER, "other"))] == [401, 401]
        assert httpx.get(url, auth=(USER, PASSWORD)).status_code == 200


@slow
def test_no_password_is_in_a_command_line_or_a_file(place: Place) -> None:
    secret = place.database.partition("@")[0].partition(":")[2]
    told = " ".join(part for process in psutil.process_iter() for part in _command_line(process))
    assert str(place.up.home) in told
    for word in (secret, PASSWORD):
        assert word not in told
        for file in (place.up.printed, *place.up.home.rglob("*")):
            if file.is_file() and file.suffix not in (".npy", ".safetensors", ".parquet"):
                assert word.encode() not in file.read_bytes(), file


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@soak
def test_another_home_reads_and_serves_the_model(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, home = place.model["name"], tmp_path / "elsewhere"
    done = guidespace("similar", "News", "--home", home, "--model", name, "--json", **place.client)
    assert done.returncode == 0, done.stderr
    titles = [one["title"] for one in json.loads(done.stdout)]
    assert len(titles) == 10
    assert len(list((home / "champions").iterdir())) == 1
    for variable, value in place.client.items():
        monkeypatch.setenv(variable, value)
    registry, ended = Registry(place.home, code=STAND_IN), threading.Event()
    folder = Path(read_latest(place.home, "model")["model"])

    def move(url: str, log: Path) -> None:
        try:
            run = registry.mlflow.client.get_model_version(name, "1").run_id
            assert registry.register(run, folder, "b" * 64, example_title="News", lineage="salt") == "2"
            registry.promote("2", "not worse", at=AT)
            until(lambda: httpx.get(f"{url}/health").json()["model"]["version"] == "2", log.read_text)
        finally:
            ended.set()

    with serving(home, tmp_path / "serve.log", "--model", name, **place.client) as (url, _, log):
        mover = threading.Thread(target=move, args=(url, log))
        mover.start()
        found = request_by_clients(url, titles, ended)
        mover.join()
    assert {status for status, _ in found} == {200}
    assert found[0][1] == "1" and found[-1][1] == "2"
    registry.mlflow.client.set_registered_model_alias(name, "champion", "1")


@slow
def test_published_parquet_is_queried_in_the_bucket(place: Place) -> None:
    place.bucket.put(f"{place.home}/artifacts", "guidespace/smoke/artifacts", recursive=True)
    views = guidespace("sql", "--home", place.home).stdout
    assert views.count(f"{place.home}/artifacts/") > 8
    query = "SELECT count(*), count(DISTINCT title), min(start) FROM airings"
    rows = []
    for told in (views, views.replace(str(place.home), "s3://guidespace/smoke")):
        with duckdb.connect() as connection:
            connection.register_filesystem(place.bucket)
            connection.execute(told)
            rows += connection.execute(query).fetchall()
    assert rows[0] == rows[1] and rows[0][0] > 9000


@soak
def test_gc_removes_models_from_the_bucket(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in place.client.items():
        monkeypatch.setenv(variable, value)
    registry = Registry(place.home, code=STAND_IN)
    run = registry.mlflow.client.get_model_version(place.model["name"], "1").run_id
    (tmp_path / "vectors.npy").write_text("aaa", encoding="utf-8")
    for digest in "cd":
        registry.register(run, tmp_path, digest * 64, example_title="News", lineage="salt")
    before = {file for file in place.bucket.find("guidespace/mlflow") if file.endswith("/MLmodel")}
    done = guidespace("gc", "--home", place.home, "--nights", "1", "--shared", **place.client)
    assert done.returncode == 0 and "models: " in done.stdout, done.stderr
    place.bucket.invalidate_cache()
    after = {file for file in place.bucket.find("guidespace/mlflow") if file.endswith("/MLmodel")}
    assert after < before
    champion = registry.champion()
    assert champion is not None and champion.version == "1"
