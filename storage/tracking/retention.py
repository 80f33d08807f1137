"""What may be removed from MLflow: models that neither serve nor may serve again, and old runs.

A model takes some 57 MB, its version's row next to nothing. What stays whole: every version with an alias,
the newest ones, and those promoted last, to which a rollback leads. Of other versions that were promoted the
files go and the row stays, with the quality that the gate compares with; of those never promoted everything
goes.

Files go before rows, so the next clean-up finds what a killed one has left. MLflow deletes rows of runs and
logged models softly: `mlflow gc` removes them for good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from storage.home.identity import read_home_id
from storage.home.retention import Removed
from storage.tracking.registry import FILES, HOME, LOGGED_MODEL, PROMOTED_AT, REMOVED, Registry

if TYPE_CHECKING:
    from mlflow.entities import LoggedModel
    from mlflow.entities.model_registry import ModelVersion as RegisteredVersion
    from mlflow.store.artifact.artifact_repo import ArtifactRepository
    from mlflow.store.entities.paged_list import PagedList

T = TypeVar("T")


class Retention(Registry):
    """Removes models and runs of a home; for its writer.

    Only those with the tag ``guidespace.home``, which every version, logged model and run of GuideSpace has:
    in the home's own database of any home (those within the home use it, and a copy has another id than the
    home it was made of), on a server of this one.
    """

    def prune_models(self, keep: int, *, dry_run: bool = False) -> Removed:
        """Removes the files of versions but those with an alias, the ``keep`` newest and the ``keep``
        promoted last, and logged models that a killed run left without a version.
        """
        versions = list(self._versions())
        kept, of_versions = self._kept(versions, keep), {one.tags.get(LOGGED_MODEL) for one in versions}
        count = size = 0
        for version in versions:
            tags, number = version.tags, str(version.version)
            model = self._logged(tags.get(LOGGED_MODEL, ""))
            if number in kept or (model is None and PROMOTED_AT in tags):  # the row alone stays
                continue
            count, size = count + 1, size + self._size(model)
            if not dry_run:
                self.client.set_model_version_tag(self.name, number, FILES, REMOVED)
                self._remove(model)
                if PROMOTED_AT not in tags:
                    self.client.delete_model_version(self.name, number)
        for model in self._logged_models():
            if model.model_id not in of_versions:
                count, size = count + 1, size + self._size(model)
                if not dry_run:
                    self._remove(model)
        return Removed(what="models", count=count, bytes=size)

    def prune_runs(self, before: datetime, keep: int, *, dry_run: bool = False) -> Removed:
        """Removes runs that ended before an instant, with their files; those of versions that
        ``prune_models`` keeps stay.
        """
        versions = list(self._versions())
        kept = self._kept(versions, keep)
        sources = {version.run_id for version in versions if str(version.version) in kept}
        ended = f"attributes.end_time < {int(before.timestamp() * 1000)}"
        found = _all(partial(self.client.search_runs, [self.experiment_id], f"{ended} AND {self._ours}"))
        old = [run for run in found if run.info.run_id not in sources and run.info.end_time]
        size = 0
        for run in old:
            place = self._place(str(run.info.artifact_uri))
            size += sum(_sizes(place))
            if not dry_run:
                place.delete_artifacts()
                self.client.delete_run(run.info.run_id)
        return Removed(what="runs in MLflow", count=len(old), bytes=size)

    def remove_files(self, folder: str) -> None:
        """Removes a folder from the files of every run of this home, of deleted runs too."""
        from mlflow.entities import ViewType

        for run in _all(partial(self.client.search_runs, [self.experiment_id], self._ours, ViewType.ALL)):
            place = self._place(str(run.info.artifact_uri))
            if place.list_artifacts(folder):
                place.delete_artifacts(folder)

    @property
    def _ours(self) -> str:
        """Condition of MLflow's search: has the tag of this home."""
        return f"tags.`{HOME}` != ''" if self.is_own else f"tags.`{HOME}` = '{read_home_id(self.home)}'"

    def _versions(self) -> Iterator[RegisteredVersion]:
        query = f"name = '{self.name}' AND {self._ours}"
        return _all(partial(self.client.search_model_versions, query))

    def _kept(self, versions: Sequence[RegisteredVersion], keep: int) -> set[str]:
        model = self._find()
        aliased = {str(number) for number in (model.aliases if model else {}).values()}
        newest = sorted((int(version.version) for version in versions), reverse=True)[:keep]
        return aliased | {*map(str, newest)} | {one.version for one in self.promoted(limit=keep)}

    def _logged_models(self) -> Iterator[LoggedModel]:
        mine = f"tags.`{HOME}` = '{read_home_id(self.home)}'"
        return _all(partial(self.client.search_logged_models, [self.experiment_id], mine))

    def _logged(self, model_id: str) -> LoggedModel | None:
        """A logged model; None where it was deleted."""
        from mlflow.exceptions import MlflowException

        try:
            return self.client.get_logged_model(model_id) if model_id else None
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            return None

    def _size(self, model: LoggedModel | None) -> int:
        return sum(_sizes(self._place(model.artifact_location))) if model else 0

    def _remove(self, model: LoggedModel | None) -> None:
        if model:
            self._place(model.artifact_location).delete_artifacts()
            self.client.delete_logged_model(model.model_id)

    def _place(self, uri: str) -> ArtifactRepository:
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

        return get_artifact_repository(uri, tracking_uri=self.uri, registry_uri=self.uri)


def _all(search: Callable[..., PagedList[T]]) -> Iterator[T]:
    """Every page of a search."""
    page = search()
    while True:
        yield from page
        if not page.token:
            return
        page = search(page_token=page.token)


def _sizes(place: ArtifactRepository, path: str | None = None) -> Iterator[int]:
    """Bytes of each file."""
    for entry in place.list_artifacts(path):
        if entry.is_dir:
            yield from _sizes(place, entry.path)
        else:
            yield int(entry.file_size or 0)
