"""Makes a Prefect server and MLflow's database ready for a home.

    python -m deployments.site HOME [FEED ...]

Creates the experiment, the work pool, the deployments and the automations, or brings them up to date. What a
person edited in the UI stays: a deployment's parameters and schedules, the pool's limit. All else is as
prefect.yaml and automations.yaml have it. (``prefect deploy`` puts parameters and schedules back, too.)
"""

import importlib
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import yaml
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import DeploymentScheduleCreate, WorkPoolCreate
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
    FlowRunFilterTags,
)
from prefect.client.schemas.objects import ConcurrencyOptions, StateType
from prefect.client.schemas.responses import DeploymentResponse
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound, PrefectHTTPStatusError
from prefect.states import Crashed
from prefect.utilities.callables import parameter_schema

from deployments.automations import apply, declared
from flows.run_context import close_crashed
from storage.home.workspace import Workspace
from storage.home.zones import home_zone
from storage.stages import ROOT
from storage.tracking import Tracking

FILE = Path(__file__).with_name("prefect.yaml")
HOME, BESIDE = "guidespace-home", "guidespace-"  # as prefect.yaml names homes: that of the nights, others
POOL = "guidespace"
RUNS_AT_A_TIME = 4  # of the whole pool; most of them wait for their home, or are short
SECONDS_TO_WAIT = 170.0


def read_declarations(home: Path, feeds: Sequence[str]) -> list[dict[str, Any]]:
    """The deployments of prefect.yaml, with ``home`` and folders in it as homes, and ``feeds`` if given."""
    entries = yaml.safe_load(FILE.read_text("utf-8"))["deployments"]
    for entry in entries:
        parameters = entry["parameters"]
        named = parameters["home"]
        parameters["home"] = str(home if named == HOME else home / named.removeprefix(BESIDE))
        if "feeds" in parameters and feeds and named == HOME:
            parameters["feeds"] = list(feeds)
    return entries


def deploy(client: SyncPrefectClient, entry: dict[str, Any], feeds: Sequence[str], zone: str) -> str:
    """Creates or updates one deployment, with schedules in a zone; returns what was done."""
    file, _, name = entry["entrypoint"].partition(":")
    module = file.removesuffix(".py").replace("/", ".")
    flow = getattr(importlib.import_module(module), name)
    full = f"{flow.name}/{entry['name']}"
    before: DeploymentResponse | None = None
    with suppress(ObjectNotFound):
        before = client.read_deployment_by_name(full)
    limit, pool = entry["concurrency_limit"], entry["work_pool"]
    fixed = {
        "flow_id": client.create_flow(flow),
        "name": entry["name"],
        "description": entry["description"],
        "tags": entry["tags"],
        "entrypoint": entry["entrypoint"],
        "pull_steps": [{"prefect.deployments.steps.set_working_directory": {"directory": str(ROOT)}}],
        "work_pool_name": pool["name"],
        "job_variables": pool["job_variables"],
        "concurrency_limit": limit["limit"],
        "concurrency_options": ConcurrencyOptions(collision_strategy=limit["collision_strategy"]),
        "parameter_openapi_schema": parameter_schema(flow).model_dump(),
        "enforce_parameter_schema": True,
        "schedules": schedules_of(before, entry, zone),
    }
    if before is None:
        client.create_deployment(**fixed, parameters=entry["parameters"])
        return f"created: {full}"
    kept = {**before.parameters, **({"feeds": entry["parameters"]["feeds"]} if feeds else {})}
    try:
        client.create_deployment(**fixed, parameters=kept)
        return f"updated: {full}"
    except PrefectHTTPStatusError as error:  # an earlier version's settings
        own = {name: kept[name] for name in ("feeds", "home") if name in kept and name in entry["parameters"]}
        client.create_deployment(**fixed, parameters=entry["parameters"] | own)
        why = " ".join(error.response.text.split())[:300]
        return f"updated: {full}; its settings do not fit this version and were left out ({why})"


def schedules_of(
    before: DeploymentResponse | None, entry: dict[str, Any], zone: str
) -> list[DeploymentScheduleCreate]:
    """Those of the server, if the deployment is there, else the declared ones."""
    if before is not None:
        kept = set(DeploymentScheduleCreate.model_fields) - {"replaces"}
        return [
            DeploymentScheduleCreate.model_validate(each.model_dump(include=kept))
            for each in before.schedules
        ]
    return [
        DeploymentScheduleCreate.model_validate(
            {
                "schedule": {"cron": about["cron"], "timezone": zone},
                "slug": about["slug"],
                "active": about.get("active", True),
            }
        )
        for about in entry.get("schedules", ())
    ]


def crash_the_dead(client: SyncPrefectClient) -> Iterator[str]:
    """Marks runs Crashed whose process is gone, unless workers of other machines may have them."""
    workers = client.read_workers_for_work_pool(POOL)
    if any(worker.status == "ONLINE" and worker.name != socket.gethostname() for worker in workers):
        return
    states = FlowRunFilterStateType(any_=[StateType.RUNNING, StateType.PENDING, StateType.CANCELLING])
    tags, state = FlowRunFilterTags(all_=[POOL]), FlowRunFilterState(type=states)
    for run in client.read_flow_runs(flow_run_filter=FlowRunFilter(tags=tags, state=state)):
        pid = run.infrastructure_pid  # set by the worker
        if run.work_pool_name == POOL and pid and not (pid.isdigit() and psutil.pid_exists(int(pid))):
            message = "Its process ended with `guidespace up`. Retry goes on from the last stage."
            crashed = Crashed(message=message)
            client.set_flow_run_state(run.id, crashed, force=True)
            close_crashed(None, run, crashed)
            yield f"marked Crashed: {run.name}"


def wait_for_server(client: SyncPrefectClient) -> None:
    """Returns once the server answers; raises httpx.TransportError if it does not in time."""
    deadline = time.monotonic() + SECONDS_TO_WAIT
    while isinstance(error := client.api_healthcheck(), Exception):
        if time.monotonic() > deadline:
            raise httpx.ConnectError(f"{client.api_url} does not answer: {error}")
        time.sleep(0.3)


def main(home: Path, feeds: Sequence[str]) -> int:
    """Applies all to the server that PREFECT_API_URL names; returns the exit code."""
    Tracking(home).experiment_id  # noqa: B018  (with artifacts in this home, whichever home logs first)
    entries, zone = read_declarations(home, feeds), home_zone(Workspace(home).home).key
    with get_client(sync_client=True) as client:
        wait_for_server(client)
        try:
            pool = WorkPoolCreate(name=POOL, type="process", concurrency_limit=RUNS_AT_A_TIME)
            client.create_work_pool(pool)
        except ObjectAlreadyExists:
            print(f"as it was: work pool {POOL}")
        for entry in entries:
            read = feeds if entry["parameters"]["home"] == str(home) else ()
            print(deploy(client, entry, read, zone), flush=True)
        for automation in declared():
            print(apply(client, automation))
        for line in crash_the_dead(client):
            print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
