"""Removes old models and runs from MLflow.

The following versions are kept: versions with an alias, the newest versions, and the last champions, which a
rollback may restore. The files of earlier champions, about 57 MB per version, are removed, but their rows in
the database are kept as a history. All other versions are removed.

Files are removed before rows, so that the next clean-up can finish an interrupted clean-up. MLflow only marks
the rows of runs and logged models as deleted; the command `mlflow gc` removes these rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from storage.home.identity import read_home_id
from storage.home.retention import RemovalResult
from storage.tracking.registry import Registry
from storage.tracking.tags import HOME_TAG, REMOVED_FILES, VersionTag

if TYPE_CHECKING:
    from mlflow.entities import LoggedModel
    from mlflow.entities.model_registry import ModelVersion as RegisteredVersion
    from mlflow.store.artifact.artifact_repo import ArtifactRepository
    from mlflow.store.entities.paged_list import PagedList

EntityT = TypeVar("EntityT")


class Retention(Registry):
    """Removes old models and runs of a home from MLflow. The caller must hold the lock of the home.

    On an MLflow server, only objects whose tag ``guidespace.home`` is the id of this home are removed. In the
    database of a home, the value of the tag is ignored, because the copy of a home gets a new id.
    """

    def prune_models(self, keep: int, *, dry_run: bool = False) -> RemovalResult:
        """Removes old model versions, and the logged models of killed runs, which have no version.

        Versions with an alias, the ``keep`` newest versions and the ``keep`` last champions are kept. If
        ``dry_run`` is set, the models are only counted.
        """
        versions = list(self._versions())
        kept_versions = self._versions_to_keep(versions, keep)
        registered_models = {version.tags.get(VersionTag.LOGGED_MODEL) for version in versions}
        removed_count = removed_bytes = 0
        for version in versions:
            tags, number = version.tags, str(version.version)
            model = self._logged_model(tags.get(VersionTag.LOGGED_MODEL, ""))
            has_only_row = model is None and VersionTag.PROMOTED_AT in tags  # a former champion without files
            if number in kept_versions or has_only_row:
                continue
            removed_count, removed_bytes = removed_count + 1, removed_bytes + self._size_of_files(model)
            if not dry_run:
                self.client.set_model_version_tag(self.name, number, VersionTag.FILES, REMOVED_FILES)
                self._remove(model)
                if VersionTag.PROMOTED_AT not in tags:
                    self.client.delete_model_version(self.name, number)
        for model in self._logged_models():
            if model.model_id not in registered_models:
                removed_count, removed_bytes = removed_count + 1, removed_bytes + self._size_of_files(model)
                if not dry_run:
                    self._remove(model)
        return RemovalResult(what="models", count=removed_count, bytes=removed_bytes)

    def prune_runs(self, ended_before: datetime, keep: int, *, dry_run: bool = False) -> RemovalResult:
        """Removes runs that ended before an instant, and their files.

        The runs of the model versions that ``prune_models(keep)`` does not remove are kept. If ``dry_run`` is
        set, the runs are only counted.
        """
        versions = list(self._versions())
        kept_versions = self._versions_to_keep(versions, keep)
        kept_run_ids = {version.run_id for version in versions if str(version.version) in kept_versions}
        has_ended = f"attributes.end_time < {int(ended_before.timestamp() * 1000)}"
        query = f"{has_ended} AND {self._home_filter}"
        runs = _search_all(partial(self.client.search_runs, [self.experiment_id], query))
        old_runs = [run for run in runs if run.info.run_id not in kept_run_ids and run.info.end_time]
        size = 0
        for run in old_runs:
            artifacts = self._artifact_repository(str(run.info.artifact_uri))
            size += sum(_file_sizes(artifacts))
            if not dry_run:
                artifacts.delete_artifacts()
                self.client.delete_run(run.info.run_id)
        return RemovalResult(what="runs in MLflow", count=len(old_runs), bytes=size)

    def remove_files(self, folder: str) -> None:
        """Removes a folder from the MLflow artifacts of all runs of this home, including deleted runs."""
        from mlflow.entities import ViewType

        search = partial(self.client.search_runs, [self.experiment_id], self._home_filter, ViewType.ALL)
        for run in _search_all(search):
            artifacts = self._artifact_repository(str(run.info.artifact_uri))
            if artifacts.list_artifacts(folder):
                artifacts.delete_artifacts(folder)

    @property
    def _home_filter(self) -> str:
        """Returns a filter for MLflow searches that selects the objects of this home."""
        if self.uses_home_database:
            return f"tags.`{HOME_TAG}` != ''"
        return f"tags.`{HOME_TAG}` = '{read_home_id(self.home)}'"

    def _versions(self) -> Iterator[RegisteredVersion]:
        """Yields all versions of the registered model that belong to this home."""
        query = f"name = '{self.name}' AND {self._home_filter}"
        return _search_all(partial(self.client.search_model_versions, query))

    def _versions_to_keep(self, versions: Sequence[RegisteredVersion], keep: int) -> set[str]:
        """Returns the numbers of the versions with an alias, the newest versions and the last champions."""
        model = self._registered_model()
        aliased = {str(number) for number in (model.aliases if model else {}).values()}
        newest = sorted((int(version.version) for version in versions), reverse=True)[:keep]
        return aliased | {*map(str, newest)} | {version.version for version in self.promoted(limit=keep)}

    def _logged_models(self) -> Iterator[LoggedModel]:
        """Yields all logged models with the id of this home."""
        home_filter = f"tags.`{HOME_TAG}` = '{read_home_id(self.home)}'"
        return _search_all(partial(self.client.search_logged_models, [self.experiment_id], home_filter))

    def _logged_model(self, model_id: str) -> LoggedModel | None:
        """Returns an MLflow logged model; None if it was deleted."""
        from mlflow.exceptions import MlflowException

        try:
            return self.client.get_logged_model(model_id) if model_id else None
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            return None

    def _size_of_files(self, model: LoggedModel | None) -> int:
        return sum(_file_sizes(self._artifact_repository(model.artifact_location))) if model else 0

    def _remove(self, model: LoggedModel | None) -> None:
        """Removes a logged model and its files; does nothing if it is None."""
        if model:
            self._artifact_repository(model.artifact_location).delete_artifacts()
            self.client.delete_logged_model(model.model_id)

    def _artifact_repository(self, uri: str) -> ArtifactRepository:
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

        return get_artifact_repository(uri, tracking_uri=self.uri, registry_uri=self.uri)


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
