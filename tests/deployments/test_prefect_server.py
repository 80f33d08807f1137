"""The nightly run under a real Prefect server and worker, as deployments/prefect.yaml deploys it."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import psutil
import pytest
import yaml
from prefect.client.schemas.schedules import CronSchedule

from deployments.site import choose_schedules
from flows.ownership import TAG_PREFIX
from storage.home.identity import read_home_id
from storage.home.workspace import Workspace
from storage.stages import ROOT
from storage.tracking import Tracking
from tests.busy import ask_until_answered
from tests.flows.command import QUICK_NIGHT

if TYPE_CHECKING:
    from .conftest import Site

FEED = str(ROOT / "sample" / "guide.xml.gz")
CACHED = {"tokenize", "preprocess", "baselines", "train", "augment", "embed", "cluster", "evaluate", "draw"}
CACHED |= {"linear", "neighbours", "layout", "pack"}
OURS = {"prefect.resource.id": "prefect.tag.guidespace", "prefect.resource.role": "tag"}


def declared(name: str) -> dict[str, Any]:
    document = yaml.safe_load((ROOT / "deployments" / "prefect.yaml").read_text(encoding="utf-8"))
    return next(deployment for deployment in document["deployments"] if deployment["name"] == name)


@pytest.mark.parametrize("name", ["nightly", "ingest", "refresh", "gc"])
def test_schedules_are_in_the_zone_of_the_home(name: str) -> None:
    (declared_schedule,) = declared(name)["schedules"]
    (made,) = choose_schedules(None, declared(name), "Australia/Lord_Howe")
    assert made.schedule == CronSchedule(cron=declared_schedule["cron"], timezone="Australia/Lord_Howe")
    kept = SimpleNamespace(schedules=[made.model_copy(update={"active": False})])  # edited in the UI
    assert choose_schedules(kept, declared(name), "UTC") == kept.schedules


@pytest.mark.slow
def test_scheduled_runs_appear(site: Site) -> None:
    deployment = site.deployment("nightly")
    (schedule,) = deployment["schedules"]
    assert (schedule["schedule"]["cron"], schedule["slug"]) == ("30 3 * * *", "every-night")
    assert deployment["global_concurrency_limit"]["limit"] == 2
    assert deployment["concurrency_options"]["collision_strategy"] == "ENQUEUE"
    assert site.deployment("nightly-smoke")["schedules"] == []
    (automation,) = site.post("/automations/filter")  # however often it was made
    assert automation["enabled"] and automation["actions"][0]["state"] == "CRASHED"
    query = {
        "deployments": {"id": {"any_": [deployment["id"]]}},
        "flow_runs": {"state": {"type": {"any_": ["SCHEDULED"]}}},
    }
    runs = site.wait_until(lambda: site.post("/flow_runs/filter", query))
    nights = {datetime.fromisoformat(run["expected_start_time"]).date() for run in runs}
    assert len(nights) == len(runs) > 1


@pytest.fixture(scope="module")
def smoke(site: Site, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """Runs nightly-smoke on the sample guide; returns the run and its home."""
    home = tmp_path_factory.mktemp("night") / "home"
    run = site.wait(site.trigger("nightly-smoke", {"feeds": [FEED], "home": str(home)}))
    assert run["state_name"] == "Completed", site.logs(run["id"])
    return run, home


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_triggered_run_publishes_everything(
    site: Site, smoke: tuple[dict[str, Any], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, home = smoke
    due = datetime.fromisoformat(run["expected_start_time"]).astimezone()
    assert run["name"] == f"{due:%Y-%m-%d %H:%M} guide.xml.gz"
    assert set(run["tags"]) == {"guidespace", "smoke", TAG_PREFIX + read_home_id(home)}
    states = site.task_states(run["id"])
    assert states.keys() == CACHED | {"ingest", "check", "register", "promote", "report"}
    assert set(states.values()) == {"Completed"}

    artifacts = {
        artifact["key"]: artifact
        for artifact in site.post("/artifacts/filter", {"artifacts": {"flow_run_id": {"any_": [run["id"]]}}})
    }
    assert (artifacts["training"]["type"], artifacts["training"]["data"]) == ("progress", 100.0)
    report = artifacts["nightly-report"]
    assert report["type"] == "markdown" and report["task_run_id"] is None  # an artifact of the flow run
    assert "guide.xml.gz" in report["data"] and "TF-IDF k-NN" in report["data"]
    assert run["state"]["message"].startswith("version 1 is champion: quality 0.")
    dropped = artifacts["dropped-categories"]
    assert dropped["type"] == "table" and "generic" in dropped["data"]
    assert "epoch 2 of 2" in site.logs(run["id"])

    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    tracking = Tracking(home)
    (found,) = tracking.mlflow.client.search_runs(
        [tracking.mlflow.experiment_id], f"tags.`prefect.flow_run_id` = '{run['id']}'"
    )
    assert found.info.status == "FINISHED"
    assert found.data.tags["prefect.flow_run_url"] == f"{site.url}/runs/flow-run/{run['id']}"
    assert found.data.params["train.dim"] == "32"
    assert found.info.run_id in site.logs(run["id"])
    (page,) = home.glob("artifacts/page/*/map.html")
    assert page.stat().st_size > 100_000


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_unchanged_run_uses_cached_stages(site: Site, smoke: tuple[dict[str, Any], Path]) -> None:
    first, home = smoke
    again = site.wait(site.trigger("nightly-smoke", {"feeds": [FEED], "home": str(home)}))
    assert again["state_name"] == "Completed", site.logs(again["id"])
    states = site.task_states(again["id"])
    assert {name for name, state in states.items() if state == "Cached"} == CACHED
    assert {states[name] for name in ("ingest", "check", "register", "promote", "report")} == {"Completed"}
    assert again["total_run_time"] < first["total_run_time"]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_workers_take_turns_on_one_home_and_write_two_side_by_side(
    site: Site, two_workers: set[int], tmp_path: Path
) -> None:
    home, other = tmp_path / "home", tmp_path / "other"

    def worker_of(run: str) -> int:
        return psutil.Process(int(site.get(f"/flow_runs/{run}")["infrastructure_pid"])).ppid()

    def waits(run: str) -> bool:
        return f"is being written by process {os.getpid()}" in site.logs(run)

    with Workspace(home).writing("a test"):  # the first run is under way for as long as this lasts
        first = site.trigger("ingest/several", {"feeds": [FEED], "home": str(home)})
        site.wait_until(lambda: waits(first))
        with Workspace(other).writing("a test"):
            beside = site.trigger("ingest/several", {"feeds": [FEED], "home": str(other)})
            site.wait_until(lambda: waits(beside))
            assert {worker_of(first), worker_of(beside)} == two_workers
            after = site.trigger("ingest/several", {"feeds": [FEED], "home": str(home)}, name="catching up")
        assert (ended := site.wait(beside))["state_name"] == "Completed", site.logs(beside)
        site.wait_until(lambda: waits(after))
        assert {worker_of(first), worker_of(after)} == two_workers
    for run in (first, after):
        assert (ended := site.wait(run))["state_name"] == "Completed", site.logs(run)
    assert ended["name"] == "catching up"


def create_running(site: Site, name: str, tags: Sequence[str] = ("guidespace",)) -> str:
    """Creates a flow run with state Running but without a process, and returns its id."""
    flow = site.deployment("nightly")["flow_id"]
    run = {"flow_id": flow, "name": name, "tags": list(tags), "state": {"type": "RUNNING"}}
    return site.post("/flow_runs/", run)["id"]


def beat(site: Site, run: str, related: Sequence[dict[str, str]] = (OURS,)) -> None:
    """Sends the heartbeat of a flow run."""
    event = {
        "id": str(uuid.uuid4()),
        "occurred": datetime.now(UTC).isoformat(),
        "event": "prefect.flow-run.heartbeat",
        "resource": {"prefect.resource.id": f"prefect.flow-run.{run}"},
        "related": list(related),
    }
    assert ask_until_answered(lambda: site.api.post("/events", json=[event])).is_success


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_run_that_was_suspended_at_work_stays_suspended(site: Site, tmp_path: Path) -> None:
    """It goes on to the end of its stage and sends heartbeats meanwhile, one every 30 seconds."""
    settings = {"train": {"dim": 32, "epochs": 150}, "evaluate": {"resamples": 100}}
    with site.automation(within=75) as quick:
        run = site.trigger(
            "nightly-smoke", {"feeds": [FEED], "home": str(tmp_path / "home"), "settings": settings}
        )
        site.wait_until(lambda: "epoch 3 of" in site.logs(run) and run in site.awaited(quick))
        site.post(
            f"/flow_runs/{run}/set_state", {"state": {"type": "PAUSED", "name": "Suspended"}, "force": True}
        )
        site.wait_until(lambda: "Finished in state Suspended" in site.logs(run))
        site.wait_until(lambda: run not in site.awaited(quick))
        later = create_running(site, "silent from now on")
        site.insist(partial(beat, site, later), lambda: later in site.awaited(quick))
        site.wait_until(lambda: site.get(f"/flow_runs/{later}")["state_name"] == "Crashed")
        assert site.get(f"/flow_runs/{run}")["state_name"] == "Suspended", site.logs(run)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_only_silent_runs_of_ours_are_marked_crashed(site: Site) -> None:
    """Four whose heartbeats are sent from here, and one that is submitted and never begins."""
    runs: dict[str, str] = {}

    def change(name: str, state: dict[str, str]) -> None:
        site.post(f"/flow_runs/{runs[name]}/set_state", {"state": state, "force": True})

    with site.automation(within=40) as quick:
        runs["of others"] = create_running(site, "of others", [])
        beat(site, runs["of others"], [])
        for name, state in {
            "suspended": {"type": "PAUSED", "name": "Suspended"},
            "cancelling": {"type": "CANCELLING"},
            "silent": {},
        }.items():
            runs[name] = create_running(site, name)
            site.insist(partial(beat, site, runs[name]), lambda run=runs[name]: site.awaited(quick) == {run})
            if state:
                site.insist(partial(change, name, state), lambda: not site.awaited(quick))
        runs["submitted"] = create_running(site, "submitted")
        pending = partial(change, "submitted", {"type": "PENDING", "name": "Submitting"})
        site.insist(pending, lambda: runs["submitted"] in site.awaited(quick))
        for name in ("silent", "submitted"):  # the last one: the others would have been marked before it
            site.wait_until(lambda run=runs[name]: site.get(f"/flow_runs/{run}")["state_name"] == "Crashed")
        assert {name: site.get(f"/flow_runs/{run}")["state_name"] for name, run in runs.items()} == {
            "silent": "Crashed", "suspended": "Suspended", "cancelling": "Cancelling", "of others": "Running",
            "submitted": "Crashed",
        }  # fmt: skip


@pytest.mark.slow
def test_runs_with_invalid_settings_are_refused_at_creation(site: Site) -> None:
    content = {"parameters": {"feeds": [FEED], "settings": {"train": {"optimizer": {"name": "magic"}}}}}
    deployment = site.deployment("nightly-smoke")["id"]
    path = f"/deployments/{deployment}/create_flow_run"
    response = ask_until_answered(lambda: site.api.post(path, json=content))
    assert response.status_code == 409
    assert "is not valid under any of the given schemas" in response.text


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_killed_flow_ends_its_mlflow_run_and_a_retry_resumes(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    home = tmp_path / "home"
    changes = [*QUICK_NIGHT, "train.dim=64", "train.epochs=40"]
    run_id = site.trigger("nightly-smoke", {"feeds": [FEED], "home": str(home), "changes": changes})
    site.wait_until(lambda: "epoch 3 of 40" in site.logs(run_id))
    holder = int((home / "writer.lock").read_text(encoding="utf-8").split('"pid": ')[1].split(",")[0])
    assert holder not in (os.getpid(), site.worker)
    os.kill(holder, signal.SIGKILL)
    crashed = site.wait(run_id, 60)
    assert crashed["state_name"] == "Crashed"
    tracking = Tracking(home)
    status = site.wait_until(
        lambda: [run.info.status for run in tracking._find_runs(run_id) if run.info.status != "RUNNING"]
    )
    assert status == ["KILLED"]
    # The worker may report the crash again once the hook has ended; a retry before that would be crashed by
    # it.
    reported = "prefect.flow_runs.worker - Check whether the flow run exceeded"
    site.wait_until(lambda: reported in (site.place / "worker.log").read_text(encoding="utf-8"))

    site.post(
        f"/flow_runs/{run_id}/set_state",
        {"state": {"type": "SCHEDULED", "name": "AwaitingRetry"}, "force": True},
    )
    ended = site.wait(run_id)
    assert ended["state_name"] == "Completed", site.logs(run_id)
    assert "resuming after epoch" in site.logs(run_id)
    (run,) = tracking._find_runs(run_id)
    assert run.info.status == "FINISHED"
