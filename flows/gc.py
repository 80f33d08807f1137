"""Removes old artifacts, models, MLflow runs, replaced versions of programmes and Prefect runs of a home."""

import datetime
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Annotated

from prefect import flow, get_run_logger
from prefect.artifacts import create_markdown_artifact
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    ArtifactFilter,
    ArtifactFilterFlowRunId,
    FlowRunFilter,
    FlowRunFilterEndTime,
)
from prefect.client.schemas.objects import FlowRun
from prefect.context import FlowRunContext
from pydantic import Field

from flows.defaults import DAYS, DEFAULT_HOME, GC_WAIT_SECONDS, HISTORY_DAYS, MAX_DAYS, NIGHTS
from flows.followed_model import prune_models
from flows.ownership import FLOW_FILTER, belongs_to, is_home_server, tag_with_home
from storage.catalogue.retention import delete_replaced_programmes
from storage.home.latest import folders_of_last_run
from storage.home.retention import RemovalResult, prune_artifacts, prune_downloaded_models
from storage.home.workspace import Workspace
from storage.tracking import Registry, TrackingError
from storage.tracking.retention import prune_model_versions, prune_runs

SHARED_SERVER = "on a server outside the home; --shared also removes the data of this home from it"
RUNS_PER_REQUEST = 200  # Prefect's maximum
Nights = Annotated[int, Field(ge=1)]
Days = Annotated[int, Field(ge=1, le=MAX_DAYS)]


@flow(name="gc", on_running=[tag_with_home])
def gc(
    home: str = DEFAULT_HOME,
    nights: Nights = NIGHTS,
    days: Days = DAYS,
    wordings: Days = HISTORY_DAYS,
    dry_run: bool = False,
    shared: bool = False,
) -> list[RemovalResult]:
    """Removes old artifacts, models, runs and replaced programmes of a home.

    Data that the champion (the served model) or a rollback needs is kept.

    Args:
        home: Folder of the home, which must exist.
        nights: Number of artifacts of each kind, and of models for a rollback, to keep.
        days: Days to keep runs in MLflow and Prefect.
        wordings: Days to keep replaced versions of programmes; runs with an earlier ``as_of`` then fail.
        dry_run: Remove nothing; only report what would be removed.
        shared: Also remove this home's runs and models from servers that other homes use, too.

    Returns:
        Number and size of the removed data, by kind of data.
    """
    removals = remove_old_data(
        home, nights, days, wordings, dry_run=dry_run, shared=shared, wait_seconds=GC_WAIT_SECONDS
    )
    results = list(removals)
    if FlowRunContext.get():
        text = "\n".join(f"- {format_removed(result, dry_run)}" for result in results)
        create_markdown_artifact(text, key="gc-report", description=f"Data removed from {home}")
    for result in results:
        get_run_logger().info("%s", format_removed(result, dry_run))
    return results


def format_removed(result: RemovalResult, dry_run: bool) -> str:
    """Formats the result of a removal as text: "artifacts: 12 removed, 340.1 MB"."""
    size = f", {result.bytes / 1e6:,.1f} MB" if result.bytes else ""
    return f"{result.what}: {result.count:,} {'would be ' * dry_run}removed{size}"


def remove_old_data(
    home: str,
    nights: int,
    days: int,
    history_days: int,
    *,
    dry_run: bool,
    shared: bool,
    wait_seconds: float = 0,
) -> Iterator[RemovalResult]:
    """Removes old data of a home (see the flow ``gc``). Yields number and size of the removed data, by kind.

    Raises:
        HomeLocked: Another process writes to the home.
    """
    workspace = Workspace(home, create=False)
    now = datetime.datetime.now(datetime.UTC)
    oldest_end = now - datetime.timedelta(days=days)
    with workspace.writing("guidespace gc", wait_seconds=wait_seconds):
        yield prune_artifacts(workspace, nights, folders_of_last_run(workspace.home), dry_run=dry_run)
        oldest_replacement = now - datetime.timedelta(days=history_days)
        yield delete_replaced_programmes(workspace.home, oldest_replacement, dry_run=dry_run)
        registry = Registry(workspace.home)
        if not (registry.mlflow.uses_home_database or shared):
            yield RemovalResult(what=f"models and runs in MLflow ({SHARED_SERVER})")
        elif not registry.mlflow.uses_home_database or registry.mlflow.database.exists():
            yield prune_model_versions(registry, nights, dry_run=dry_run)
            yield prune_runs(registry, oldest_end, nights, dry_run=dry_run)
        with suppress(TrackingError):  # the champion's files are missing; commands that need them report this
            if champion := registry.champion():
                yield prune_downloaded_models(workspace, champion.folder, dry_run=dry_run)
        yield prune_models(workspace.home, oldest_end, dry_run=dry_run)
        yield prune_flow_runs(workspace.home, oldest_end, dry_run, shared)


def prune_flow_runs(
    home: Path, ended_before: datetime.datetime, dry_run: bool, shared: bool = False
) -> RemovalResult:
    """Deletes the Prefect flow runs of a home that ended before an instant, with their logs and artifacts.

    If the database of the Prefect server is in the home, it is compacted. If it is elsewhere, nothing is
    deleted unless ``shared`` is set.
    """
    database, count = home / "prefect" / "prefect.db", 0
    bytes_before = _database_size(database)
    with get_client(sync_client=True) as client:
        if not (uses_home_database := is_home_server(client, home)) and not shared:
            return RemovalResult(what=f"runs in Prefect ({SHARED_SERVER})")
        for run in list(_find_ended_runs(client, ended_before)):
            if belongs_to(run, home, on_home_server=uses_home_database):
                count += 1
                if not dry_run:
                    _delete_run(client, run)
    if uses_home_database and count and not dry_run:
        with suppress(sqlite3.OperationalError), closing(sqlite3.connect(database, timeout=20)) as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    freed_bytes = max(0, bytes_before - _database_size(database)) if uses_home_database else 0
    return RemovalResult(what="runs in Prefect", count=count, bytes=freed_bytes)


def _database_size(database: Path) -> int:
    """Returns the size in bytes of an SQLite database, including its journal files."""
    return sum(file.stat().st_size for file in database.parent.glob(f"{database.name}*"))


def _find_ended_runs(client: SyncPrefectClient, ended_before: datetime.datetime) -> Iterator[FlowRun]:
    run_filter = FlowRunFilter(end_time=FlowRunFilterEndTime(before_=ended_before))  # pyright: ignore[reportArgumentType]
    offset = 0
    while page := client.read_flow_runs(
        flow_filter=FLOW_FILTER, flow_run_filter=run_filter, limit=RUNS_PER_REQUEST, offset=offset
    ):
        yield from page
        offset += len(page)


def _delete_run(client: SyncPrefectClient, run: FlowRun) -> None:
    """Deletes a flow run, its logs and its Prefect artifacts (which Prefect does not delete itself)."""
    artifacts_of_run = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[run.id]))
    while artifacts := client.read_artifacts(artifact_filter=artifacts_of_run, limit=RUNS_PER_REQUEST):
        for artifact in artifacts:
            client.delete_artifact(artifact.id)
    client.delete_flow_run(run.id)
