"""Prepares a Prefect server and MLflow's database for a home.

    python -m deployments.site HOME [FEED ...]

Creates the MLflow experiment and the work pool, and creates or updates the deployments of prefect.yaml and
the automations of automations.yaml. Keeps changes that a user has made in Prefect's UI: parameters and
schedules of deployments, and the limit of the work pool. (``prefect deploy`` would reset parameters and
schedules.)
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

from deployments.automations import apply_automation, read_automations
from flows.defaults import DEFAULT_HOME, RUN_TAG, WORK_POOL
from flows.run_context import end_mlflow_run
from storage.home.workspace import Workspace
from storage.home.zones import home_zone
from storage.stages import ROOT
from storage.tracking.connection import MlflowConnection

FILE = Path(__file__).with_name("prefect.yaml")
NESTED_HOME_PREFIX = "guidespace-"  # prefix of the names of nested homes in prefect.yaml
CONCURRENCY_LIMIT = 4  # flow runs at a time in the work pool; most of them are short or wait for a lock
SERVER_TIMEOUT_SECONDS = 170.0  # maximum wait for the answer of the Prefect server


def read_declarations(home: Path, feeds: Sequence[str]) -> list[dict[str, Any]]:
    """Reads the deployments of prefect.yaml, and replaces their homes by ``home`` or a folder in ``home``.

    ``feeds``, if not empty, replaces the feeds of the deployments whose home is ``home`` itself.
    """
    declarations = yaml.safe_load(FILE.read_text("utf-8"))["deployments"]
    for declaration in declarations:
        parameters = declaration["parameters"]
        home_name = parameters["home"]
        is_main_home = home_name == DEFAULT_HOME
        folder = home if is_main_home else home / home_name.removeprefix(NESTED_HOME_PREFIX)
        parameters["home"] = str(folder)
        if "feeds" in parameters and feeds and is_main_home:
            parameters["feeds"] = list(feeds)
    return declarations


def deploy(client: SyncPrefectClient, declaration: dict[str, Any], feeds: Sequence[str], zone: str) -> str:
    """Creates or updates a deployment on a Prefect server, and returns a message.

    Args:
        client: Client of the server.
        declaration: Declaration of the deployment in prefect.yaml.
        feeds: New feeds of an existing deployment; if empty, the deployment keeps its feeds.
        zone: IANA name of the time zone of the schedules.
    """
    file, _, name = declaration["entrypoint"].partition(":")
    module = file.removesuffix(".py").replace("/", ".")
    flow = getattr(importlib.import_module(module), name)
    full_name = f"{flow.name}/{declaration['name']}"
    existing_deployment: DeploymentResponse | None = None
    with suppress(ObjectNotFound):
        existing_deployment = client.read_deployment_by_name(full_name)
    concurrency, work_pool = declaration["concurrency_limit"], declaration["work_pool"]
    properties = {
        "flow_id": client.create_flow(flow),
        "name": declaration["name"],
        "description": declaration["description"],
        "tags": declaration["tags"],
        "entrypoint": declaration["entrypoint"],
        "pull_steps": [{"prefect.deployments.steps.set_working_directory": {"directory": str(ROOT)}}],
        "work_pool_name": work_pool["name"],
        "job_variables": work_pool["job_variables"],
        "concurrency_limit": concurrency["limit"],
        "concurrency_options": ConcurrencyOptions(collision_strategy=concurrency["collision_strategy"]),
        "parameter_openapi_schema": parameter_schema(flow).model_dump(),
        "enforce_parameter_schema": True,
        "schedules": choose_schedules(existing_deployment, declaration, zone),
    }
    if existing_deployment is None:
        client.create_deployment(**properties, parameters=declaration["parameters"])
        return f"created: {full_name}"
    parameters = existing_deployment.parameters | (
        {"feeds": declaration["parameters"]["feeds"]} if feeds else {}
    )
    try:
        client.create_deployment(**properties, parameters=parameters)
        return f"updated: {full_name}"
    except PrefectHTTPStatusError as error:  # this version does not accept the stored parameters
        defaults = declaration["parameters"]
        user_names = {"feeds", "home"} & parameters.keys() & defaults.keys()
        user_parameters = {name: parameters[name] for name in user_names}
        client.create_deployment(**properties, parameters=defaults | user_parameters)
        reason = " ".join(error.response.text.split())[:300]
        return f"updated: {full_name}; removed settings that this version does not accept ({reason})"


def choose_schedules(
    existing_deployment: DeploymentResponse | None, declaration: dict[str, Any], zone: str
) -> list[DeploymentScheduleCreate]:
    """Returns the schedules of an existing deployment, or for a new one, the schedules of prefect.yaml."""
    if existing_deployment is not None:
        fields = set(DeploymentScheduleCreate.model_fields) - {"replaces"}
        return [
            DeploymentScheduleCreate.model_validate(schedule.model_dump(include=fields))
            for schedule in existing_deployment.schedules
        ]
    return [
        DeploymentScheduleCreate.model_validate(
            {
                "schedule": {"cron": schedule["cron"], "timezone": zone},
                "slug": schedule["slug"],
                "active": schedule.get("active", True),
            }
        )
        for schedule in declaration.get("schedules", ())
    ]


def mark_dead_worker_runs(client: SyncPrefectClient) -> Iterator[str]:
    """Sets flow runs of the worker to Crashed if their process has ended. Yields a message for each run.

    Does nothing if workers on other machines are online, because processes there are not visible here.
    """
    workers = client.read_workers_for_work_pool(WORK_POOL)
    if any(worker.status == "ONLINE" and worker.name != socket.gethostname() for worker in workers):
        return
    states = FlowRunFilterStateType(any_=[StateType.RUNNING, StateType.PENDING, StateType.CANCELLING])
    tags, state = FlowRunFilterTags(all_=[RUN_TAG]), FlowRunFilterState(type=states)
    for run in client.read_flow_runs(flow_run_filter=FlowRunFilter(tags=tags, state=state)):
        pid = run.infrastructure_pid  # set by the worker
        if run.work_pool_name == WORK_POOL and pid and not (pid.isdigit() and psutil.pid_exists(int(pid))):
            message = "The process ended with `guidespace up`; Retry continues after the last finished stage."
            crashed_state = Crashed(message=message)
            client.set_flow_run_state(run.id, crashed_state, force=True)
            end_mlflow_run(None, run, crashed_state)
            yield f"marked Crashed: {run.name}"


def wait_for_server(client: SyncPrefectClient) -> None:
    """Waits until a Prefect server answers; raises httpx.ConnectError after SERVER_TIMEOUT_SECONDS."""
    deadline = time.monotonic() + SERVER_TIMEOUT_SECONDS
    while isinstance(error := client.api_healthcheck(), Exception):
        if time.monotonic() > deadline:
            raise httpx.ConnectError(f"{client.api_url} does not answer: {error}")
        time.sleep(0.3)


def main(home: Path, feeds: Sequence[str]) -> int:
    """Prepares the server of PREFECT_API_URL and MLflow's database, and returns the exit code."""
    MlflowConnection(home).experiment_id  # noqa: B018  (creates the experiment, with artifacts in this home)
    declarations, zone = read_declarations(home, feeds), home_zone(Workspace(home).home).key
    with get_client(sync_client=True) as client:
        wait_for_server(client)
        try:
            pool = WorkPoolCreate(name=WORK_POOL, type="process", concurrency_limit=CONCURRENCY_LIMIT)
            client.create_work_pool(pool)
        except ObjectAlreadyExists:
            print(f"exists already: work pool {WORK_POOL}")
        for declaration in declarations:
            new_feeds = feeds if declaration["parameters"]["home"] == str(home) else ()
            print(deploy(client, declaration, new_feeds, zone), flush=True)
        for automation in read_automations():
            print(apply_automation(client, automation))
        for line in mark_dead_worker_runs(client):
            print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
