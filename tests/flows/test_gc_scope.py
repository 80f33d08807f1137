"""``guidespace gc`` on Prefect and MLflow servers that other projects use, too."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import httpx
import pytest
import yaml
from mlflow.tracking import MlflowClient

from flows.ownership import FLOWS, TAG_PREFIX, tag_with_home
from flows.up.prefect_client import make_client
from flows.up.processes import start_process, terminate
from storage.home.identity import make_home_id
from storage.stages import ROOT
from storage.tracking import Tracking
from tests.busy import post_until_answered
from tests.flows.up_process import until
from tests.ports import free_port

CLEAN = """
import json, sys
from dataclasses import asdict
from flows.server import start_prefect
if waiting := start_prefect(sys.argv[1]):
    waiting()
from flows.gc import remove_old_data
removed = remove_old_data(sys.argv[1], 1, -1, 365, dry_run=False, shared=sys.argv[2] == "shared")
print(json.dumps([asdict(one) for one in removed]))
"""
MAKE_AND_CLEAN = """
import sys
from flows.server import start_prefect
start_prefect(sys.argv[1])()
from prefect import flow, tags
from flows.ownership import tag_with_home
@flow(name="nightly", on_running=[tag_with_home])
def nightly(home: str): pass
@flow(name="nightly")
def before(home: str): pass
@flow(name="nightly")
def nightly_of_others(): pass
@flow(name="other")
def other(home: str): pass
for home in (sys.argv[1], sys.argv[1] + "/smoke"):
    nightly(home)
    before(home)  # as an earlier version left it
before("/elsewhere")
nightly_of_others()
with tags("guidespace"):
    other(sys.argv[1])
from flows.gc import remove_old_data
removed = remove_old_data(sys.argv[1], 1, -1, 365, dry_run=False, shared=False)
print({one.what: one.count for one in removed}["runs in Prefect"])
from prefect.client.orchestration import get_client
with get_client(sync_client=True) as client:
    for run in client.read_flow_runs():
        print(client.read_flow(run.flow_id).name, run.parameters.get("home"))
"""


def run(script: str, *arguments: object, **more: str) -> str:
    """Runs a script with the Prefect and MLflow that ``more`` names; returns its standard output."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PREFECT_", "MLFLOW_"))
    }
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd=ROOT, env={**environment, "DO_NOT_TRACK": "1", **more}, capture_output=True, encoding="utf-8",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def clean(home: Path, *, shared: bool = False, environment: dict[str, str] | None = None) -> dict[str, int]:
    """Runs gc for everything that has ended; returns how much it removed of each kind."""
    printed = run(CLEAN, home, "shared" if shared else "own", **(environment or {}))
    return {each["what"]: each["count"] for each in json.loads(printed.splitlines()[-1])}


@pytest.fixture(scope="module")
def servers(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[httpx.Client, MlflowClient, dict[str, str]]]:
    """A Prefect and an MLflow server that GuideSpace did not start, and the variables that name them."""
    place = tmp_path_factory.mktemp("servers")
    ports = free_port(), free_port()
    urls = [f"http://127.0.0.1:{port}" for port in ports]
    environment = {**os.environ, "PREFECT_HOME": str(place / "prefect"), "DO_NOT_TRACK": "1"}
    for name in ("PREFECT_API_URL", "MLFLOW_TRACKING_URI"):
        environment.pop(name, None)
    store = [
        "--backend-store-uri",
        f"sqlite:///{place / 'mlflow.db'}",
        "--artifacts-destination",
        str(place / "a"),
    ]
    commands = {
        "prefect": ["flows.up.prefect_server", "--port", str(ports[0])],
        "mlflow": ["mlflow", "server", "--workers", "1", "--port", str(ports[1]), *store],
    }
    started = [
        start_process(name, [sys.executable, "-m", *command], place / f"{name}.log", environment, ROOT)
        for name, command in commands.items()
    ]

    def answers(url: str) -> bool:
        try:
            return httpx.get(url).is_success
        except httpx.TransportError:
            return False

    try:
        for url, log in ((f"{urls[0]}/api/health", "prefect"), (f"{urls[1]}/health", "mlflow")):
            until(lambda url=url: answers(url), (place / f"{log}.log").read_text)
        named = {"PREFECT_API_URL": f"{urls[0]}/api", "MLFLOW_TRACKING_URI": urls[1]}
        with make_client(urls[0], timeout=30) as prefect:
            yield prefect, MlflowClient(urls[1]), named
    finally:
        terminate([process for process, _ in started])
        for _, process in started:
            process.wait()


def flow_runs(prefect: httpx.Client) -> dict[str, str]:
    """Returns id and name of all flow runs."""
    return {each["id"]: each["name"] for each in post_until_answered(prefect, "/flow_runs/filter", {})}


def add_flow_run(prefect: httpx.Client, name: str, flow: str, **about: object) -> None:
    flow_id = post_until_answered(prefect, "/flows/", {"name": flow})["id"]
    content = {"flow_id": flow_id, "name": name, "state": {"type": "COMPLETED"}, **about}
    run_id = post_until_answered(prefect, "/flow_runs/", content)["id"]
    artifact = {"key": f"report-{name}", "type": "markdown", "data": name, "flow_run_id": run_id}
    post_until_answered(prefect, "/artifacts/", artifact)


def tracked(mlflow: MlflowClient) -> set[str]:
    """Returns the experiments, runs with artifacts, and model versions of MLflow's server."""
    experiments = {each.experiment_id: each.name for each in mlflow.search_experiments()}
    runs = mlflow.search_runs([*experiments])
    files = {
        f"{run.info.run_name}: {file.path}" for run in runs for file in mlflow.list_artifacts(run.info.run_id)
    }
    versions = {f"{each.name} {each.version}" for each in mlflow.search_model_versions()}
    return {*experiments.values(), *files, *versions}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_on_shared_servers_only_tagged_runs_are_removed(
    servers: tuple[httpx.Client, MlflowClient, dict[str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prefect, mlflow, named = servers
    home = tmp_path / "home"
    identity = make_home_id(home)
    (home / "prefect").mkdir()
    (home / "prefect" / "prefect.db").write_bytes(b"")  # of an earlier run, and not the server's
    add_flow_run(prefect, "ours", "nightly", tags=[TAG_PREFIX + identity], parameters={"home": str(home)})
    add_flow_run(
        prefect, "of-another-home", "nightly", tags=[f"{TAG_PREFIX}other-1234"], parameters={"home": "/other"}
    )
    add_flow_run(prefect, "untagged", "nightly", parameters={"home": str(home)})
    add_flow_run(prefect, "default-home", "nightly")
    add_flow_run(prefect, "unrelated", "other", tags=["guidespace"], parameters={"home": str(home)})

    monkeypatch.setenv("MLFLOW_TRACKING_URI", named["MLFLOW_TRACKING_URI"])
    tracking = Tracking(home)
    ours = tracking.start_run("flow-1", "ours")
    tracking.log_text(ours, "text", "ours.txt")
    tracking.end_run(ours)
    for name in ("guidespace", "another experiment"):
        found = mlflow.get_experiment_by_name(name)
        experiment = found.experiment_id if found else mlflow.create_experiment(name)
        theirs = mlflow.create_run(experiment, run_name=f"theirs in {name}").info.run_id
        mlflow.log_text(theirs, "text", "theirs.txt")
        mlflow.set_terminated(theirs)
    for model in ("another model", f"guidespace-titles-{identity}"):  # the second: registered by hand
        mlflow.create_registered_model(model)
        mlflow.create_model_version(model, source=f"runs:/{theirs}/model", run_id=theirs)

    runs, everything = flow_runs(prefect), tracked(mlflow)
    variables = named | {"PREFECT_HOME": str(home / "prefect")}
    assert not any(clean(home, environment=variables).values())
    assert (flow_runs(prefect), tracked(mlflow)) == (runs, everything)
    removed = clean(home, shared=True, environment=variables)
    assert (removed["runs in Prefect"], removed["runs in MLflow"], removed["models"]) == (1, 1, 0)
    left = {"of-another-home", "untagged", "default-home", "unrelated"}
    assert set(flow_runs(prefect).values()) == left and len(flow_runs(prefect)) == len(runs) - 1
    keys = {each["key"] for each in post_until_answered(prefect, "/artifacts/filter", {})}
    assert keys == {f"report-{name}" for name in left}
    assert tracked(mlflow) == everything - {"ours: ours.txt"}


@pytest.mark.slow
def test_in_the_database_of_the_home_only_runs_of_our_flows_are_removed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    removed, *left = run(MAKE_AND_CLEAN, home).splitlines()
    assert removed == "4"
    assert sorted(left) == ["nightly /elsewhere", "nightly None", f"other {home}"]


@pytest.mark.parametrize("name", FLOWS)
def test_every_flow_tags_its_runs(name: str) -> None:
    module, attribute = ("tune", "run_searches") if name == "searches" else (name, name)
    flow = getattr(import_module(f"flows.{module}"), attribute)
    assert flow.name == name and "home" in flow.parameters.properties
    assert flow.on_running_hooks == [tag_with_home]


def test_every_deployment_runs_a_flow_that_tags_its_runs_and_takes_its_parameters() -> None:
    deployments = yaml.safe_load((ROOT / "deployments" / "prefect.yaml").read_text("utf-8"))["deployments"]
    for deployment in deployments:
        file, name = deployment["entrypoint"].split(":")
        assert name in FLOWS and file == f"flows/{name}.py"
        flow = getattr(import_module(f"flows.{name}"), name)
        dates = {"first": "2026-11-01", "last": "2026-11-02"} if name == "backfill" else {}
        flow.validate_parameters(deployment["parameters"] | dates)
