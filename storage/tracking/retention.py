"""Removes old models and runs from MLflow.

The following versions are kept: versions with an alias, the newest versions, and the last champions, which a
rollback may restore. The files of earlier champions, about 57 MB per version, are removed, but their rows in
the database are kept as a history. All other versions are removed.

Files are removed before rows, so that the next clean-up can finish an interrupted clean-up. MLflow only marks
the rows of runs and logged models as deleted; the command `mlflow gc` removes these rows.

On an MLflow server, only objects whose tag ``guidespace.home`` is the id of the home are removed. In the
database of a home, the value of the tag is ignored, because the copy of a home gets a new id. The caller must
hold the lock of the home.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from storage.home.identity import read_home_id
from storage.home.retention import RemovalResult
from storage.tracking.connection import MlflowConnection
from storage.tracking.registry import Registry
from storage.tracking.tags import HOME_TAG, REMOVED_FILES, VersionTag

if TYPE_CHECKING:
    from mlflow.entities import LoggedModel
    from mlflow.entities.model_registry import ModelVersion as RegisteredVersion
    from mlflow.store.artifact.artifact_repo import ArtifactRepository
    from mlflow.store.entities.paged_list import PagedList

EntityT = TypeVar("EntityT")


def prune_model_versions(registry: Registry, keep: int, *, dry_run: bool = False) -> RemovalResult:
    """Removes old model versions, and the logged models of killed runs, which have no version.

    Versions with an alias, the ``keep`` newest versions and the ``keep`` last champions are kept. If
    ``dry_run`` is set, the models are only counted.
    """
    mlflow = registry.mlflow
    versions = _find_versions(registry)
    kept_versions = _versions_to_keep(registry, versions, keep)
    registered_models = {version.tags.get(VersionTag.LOGGED_MODEL) for version in versions}
    sizes: list[int] = []
    for version in versions:
        tags, number = version.tags, str(version.version)
        model = _find_logged_model(mlflow, tags.get(VersionTag.LOGGED_MODEL, ""))
        has_only_row = model is None and VersionTag.PROMOTED_AT in tags  # a former champion without files
        if number in kept_versions or has_only_row:
            continue
        if not dry_run:
            mlflow.client.set_model_version_tag(registry.name, number, VersionTag.FILES, REMOVED_FILES)
        sizes.append(_remove_logged_model(mlflow, model, dry_run) if model else 0)
        if not dry_run and VersionTag.PROMOTED_AT not in tags:
            mlflow.client.delete_model_version(registry.name, number)
    search = partial(mlflow.client.search_logged_models, [mlflow.experiment_id], _home_filter(mlflow))
    for model in _search_all(search):
        if model.model_id not in registered_models:
            sizes.append(_remove_logged_model(mlflow, model, dry_run))
    return RemovalResult(what="models", count=len(sizes), bytes=sum(sizes))


def prune_runs(
    registry: Registry, ended_before: datetime, keep: int, *, dry_run: bool = False
) -> RemovalResult:
    """Removes runs that ended before an instant, and their files.

    The runs of the model versions that ``prune_model_versions`` does not remove are kept. If ``dry_run`` is
    set, the runs are only counted.
    """
    mlflow, versions = registry.mlflow, _find_versions(registry)
    kept_versions = _versions_to_keep(registry, versions, keep)
    kept_run_ids = {version.run_id for version in versions if str(version.version) in kept_versions}
    has_ended = f"attributes.end_time < {int(ended_before.timestamp() * 1000)}"
    query = f"{has_ended} AND {_home_filter(mlflow)}"
    runs = _search_all(partial(mlflow.client.search_runs, [mlflow.experiment_id], query))
    old_runs = [run for run in runs if run.info.run_id not in kept_run_ids and run.info.end_time]
    size = 0
    for run in old_runs:
        size += _remove_files(mlflow, str(run.info.artifact_uri), dry_run)
        if not dry_run:
            mlflow.client.delete_run(run.info.run_id)
    return RemovalResult(what="runs in MLflow", count=len(old_runs), bytes=size)


def remove_run_files(mlflow: MlflowConnection, folder: str) -> None:
    """Removes a folder from the MLflow artifacts of all runs of a home, including deleted runs."""
    from mlflow.entities import ViewType

    search = partial(mlflow.client.search_runs, [mlflow.experiment_id], _home_filter(mlflow), ViewType.ALL)
    for run in _search_all(search):
        artifacts = _open_artifacts(mlflow, str(run.info.artifact_uri))
        if artifacts.list_artifacts(folder):
            artifacts.delete_artifacts(folder)


def _home_filter(mlflow: MlflowConnection) -> str:
    """Returns a filter for MLflow searches that selects the objects of the home."""
    if mlflow.uses_home_database:
        return f"tags.`{HOME_TAG}` != ''"
    return f"tags.`{HOME_TAG}` = '{read_home_id(mlflow.home)}'"


def _find_versions(registry: Registry) -> list[RegisteredVersion]:
    """Returns all versions of the registered model that belong to the home."""
    query = f"name = '{registry.name}' AND {_home_filter(registry.mlflow)}"
    return list(_search_all(partial(registry.mlflow.client.search_model_versions, query)))


def _versions_to_keep(registry: Registry, versions: Sequence[RegisteredVersion], keep: int) -> set[str]:
    """Returns the numbers of the versions with an alias, the newest versions and the last champions."""
    model = registry.registered_model()
    aliased = {str(number) for number in (model.aliases if model else {}).values()}
    newest = sorted((int(version.version) for version in versions), reverse=True)[:keep]
    return aliased | {*map(str, newest)} | {version.version for version in registry.promoted(limit=keep)}


def _find_logged_model(mlflow: MlflowConnection, model_id: str) -> LoggedModel | None:
    """Returns an MLflow logged model; None if it was deleted or ``model_id`` is empty."""
    from mlflow.exceptions import MlflowException

    try:
        return mlflow.client.get_logged_model(model_id) if model_id else None
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise
        return None


def _remove_logged_model(mlflow: MlflowConnection, model: LoggedModel, dry_run: bool) -> int:
    """Removes a logged model and its files unless ``dry_run`` is set; returns the size of the files."""
    size = _remove_files(mlflow, model.artifact_location, dry_run)
    if not dry_run:
        mlflow.client.delete_logged_model(model.model_id)
    return size


def _remove_files(mlflow: MlflowConnection, uri: str, dry_run: bool) -> int:
    """Removes the files at an artifact URI unless ``dry_run`` is set; returns their size in bytes."""
    artifacts = _open_artifacts(mlflow, uri)
    size = sum(_file_sizes(artifacts))
    if not dry_run:
        artifacts.delete_artifacts()
    return size


def _open_artifacts(mlflow: MlflowConnection, uri: str) -> ArtifactRepository:
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    return get_artifact_repository(uri, tracking_uri=mlflow.uri, registry_uri=mlflow.uri)


def _search_all(search: Callable[..., PagedList[EntityT]]) -> Iterator[EntityT]:
    """Yields the results of all pages of an MLflow search."""
    page = search()
    while True:
        yield from page
        if not page.token:
            return
        page = search(page_token=page.token)


def _file_sizes(artifacts: ArtifactRepository, path: str | None = None) -> Iterator[int]:
    """Yields the size in bytes of each file in an artifact folder and its subfolders."""
    for entry in artifacts.list_artifacts(path):
        if entry.is_dir:
            yield from _file_sizes(artifacts, entry.path)
        else:
            yield int(entry.file_size or 0)
