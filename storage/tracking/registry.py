"""Which model serves: versions of one registered model, and the aliases ``challenger`` and ``champion``.

A version is found by the digest of its model files (tag ``guidespace.model``): the same model never becomes
two versions. ``champion`` is asked of MLflow each time, so moving the alias on MLflow's page is a rollback. A
registered model belongs to one home, which its tag ``guidespace.home`` names.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from storage.digests import content_digest
from storage.identity import make_home_id, write_marker
from storage.tracking.connection import CHOSEN_NAME, MODEL_NAME, Connection, TrackingError, aliased_version
from storage.tracking.model_files import CODE, write_model

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion as RegisteredVersion
    from mlflow.entities.model_registry import RegisteredModel

ABOUT = "Titles like this one: answers the nearest titles of the guide, also for an unseen title."
DIGEST = "guidespace.model"
CONTENT = "guidespace.content"  # digest of the files as registered; versions of before lack it
LINEAGE = "guidespace.lineage"
PROMOTED_AT = "guidespace.promoted_at"
REASON = "guidespace.reason"
QUALITY = "guidespace.score.quality"
HOME = "guidespace.home"
LOGGED_MODEL = "guidespace.logged_model"  # MLflow's SQL store takes a version's model_id and does not keep it


class Champion(NamedTuple):
    """The model that serves: its version, the digest of its model folder, and its files on this machine."""

    version: str
    digest: str
    folder: Path


class ModelVersion(NamedTuple):
    """A version that was promoted once, and the gate's figure then (None where nothing was held out)."""

    version: str
    quality: float | None


class Registry(Connection):
    """The registered model of a home, served by the file ``code``; see Connection.model_name for its name."""

    def __init__(self, home: Path | str, code: Path = CODE, name: str | None = None) -> None:
        super().__init__(home)
        self.code = code
        self._chosen = name

    @property
    def name(self) -> str:
        """Name of the registered model in MLflow."""
        return self.model_name(self._chosen)

    def register(
        self, run_id: str, model_folder: Path, digest: str, *, example_title: str, lineage: str
    ) -> str:
        """Registers a model as ``challenger`` unless a version of that digest exists; returns the version.

        The run's outputs show it; versions of one ``lineage`` were scored on comparable held-out sets. A
        TrackingError where the registered model is another home's.
        """
        from mlflow.entities import LoggedModelOutput

        self._claim()
        if (version := self.version_of(digest)) is None:
            tags = {DIGEST: digest, CONTENT: content_digest(model_folder), LINEAGE: lineage}
            version = self._create_version(run_id, model_folder, example_title, tags)
        outputs = self.client.get_run(run_id).outputs
        shown = {output.model_id for output in outputs.model_outputs} if outputs else set()
        if (model_id := version.tags.get(LOGGED_MODEL)) and model_id not in shown:
            self.client.log_outputs(run_id, [LoggedModelOutput(model_id, step=0)])
        self.client.set_registered_model_alias(self.name, "challenger", version.version)
        return str(version.version)

    def logged_model(self, version: str) -> str:
        """Id of the logged model behind a version: metrics are linked to it."""
        return self.client.get_model_version(self.name, version).tags.get(LOGGED_MODEL, "")

    def describe(self, version: str, text: str) -> None:
        """Sets the description (Markdown) of a version, which MLflow's page shows on top."""
        self.client.update_model_version(self.name, version, text)

    def version_of(self, digest: str) -> RegisteredVersion | None:
        """The newest version of that digest whose files still exist."""
        query = f"name = '{self.name}' AND tags.`{DIGEST}` = '{digest}'"
        for version in self.client.search_model_versions(query, order_by=["version_number DESC"]):
            if not str(version.source).startswith("/") or Path(str(version.source)).is_dir():
                return version
        return None

    def promote(self, version: str, reason: str, *, at: datetime, quality: float | None = None) -> None:
        """Moves the alias ``champion`` and records when, why and at which quality."""
        tags = {PROMOTED_AT: at.astimezone(UTC).isoformat(), REASON: reason}
        for key, value in (tags if quality is None else {**tags, QUALITY: repr(quality)}).items():
            self.client.set_model_version_tag(self.name, version, key, value)
        self.client.set_registered_model_alias(self.name, "champion", version)

    def promoted(self, lineage: str = "", limit: int = 30) -> list[ModelVersion]:
        """The versions promoted last (of one lineage, where given), newest first, with the champion."""
        query = f"name = '{self.name}' AND tags.`{PROMOTED_AT}` != ''"
        query += f" AND tags.`{LINEAGE}` = '{lineage}'" if lineage else ""
        found = [(one.tags, int(one.version)) for one in self.client.search_model_versions(query)]
        found.sort(key=lambda one: (one[0][PROMOTED_AT], one[1]), reverse=True)
        last = [(str(version), tags.get(QUALITY)) for tags, version in found[:limit]]
        return [ModelVersion(version, float(quality) if quality else None) for version, quality in last]

    def champion(self) -> Champion | None:
        """The version that the alias ``champion`` names, or None; TrackingError where its files are gone, or
        are not those that were registered.
        """
        if (found := self._aliased("champion")) is None:
            return None
        version, digest, content, place = found
        is_local = place.startswith(("/", "file:///"))
        folder = Path(place.removeprefix("file://")) if is_local else self._downloaded(version, digest)
        models = list((folder / "artifacts").glob("*"))
        if len(models) != 1:
            raise TrackingError(
                f"the champion, version {version} of {self.name}, has no files in {folder}. Run `guidespace "
                "nightly` again with --set publish.promote=always, or give the alias to another version."
            )
        if content and content_digest(models[0]) != content:
            raise TrackingError(
                f"the champion, version {version} of {self.name}, was changed after it was registered: the "
                f"digest of {models[0]} is not its tag {CONTENT}. Give the alias champion to another "
                "version, or restore the folder."
            )
        return Champion(version=version, digest=digest, folder=models[0])

    def _create_version(
        self, run_id: str, model_folder: Path, example_title: str, facts: dict[str, str]
    ) -> RegisteredVersion:
        """Logs a model and registers it. Nothing here touches MLflow's global state."""
        client, params = self.client, self.client.get_run(run_id).data.params
        experiment, status = self.experiment_id, "FAILED"
        model = client.create_logged_model(experiment, MODEL_NAME, run_id, facts, params, "title-search")
        try:
            with tempfile.TemporaryDirectory() as temporary:
                folder = Path(temporary) / "model"
                write_model(folder, self.code, model_folder, example_title, model)
                client.log_model_artifacts(model.model_id, str(folder))
            status = "READY"
        finally:
            client.finalize_logged_model(model.model_id, status)
        # a server resolves models:/ID; the SQLite store would ask MLflow's global address, which is not ours
        on_server, tags = self.uri.startswith("http"), {**facts, LOGGED_MODEL: model.model_id}
        source = f"models:/{model.model_id}" if on_server else model.artifact_location
        version = client.create_model_version(self.name, source, run_id, tags, model_id=model.model_id)
        versions = json.dumps([{"name": self.name, "version": version.version}])
        client.set_logged_model_tags(model.model_id, {"mlflow.modelVersions": versions})
        return version

    def _claim(self) -> None:
        """Makes the registered model, or verifies its owner."""
        own = make_home_id(self.home)
        model = self._find()
        if model is None:
            self.client.create_registered_model(self.name, {HOME: own}, ABOUT)
        elif not self.is_own and (owner := model.tags.get(HOME, own)) != own:
            raise TrackingError(
                f"the registered model {self.name} in this MLflow belongs to the home {owner}; {self.home} "
                f"is {own}. Set publish.registered_model to another name, or leave it empty for its own."
            )
        else:
            self.client.set_registered_model_tag(self.name, HOME, own)
        if self._chosen is not None:  # for readers of this home
            write_marker(self.home, **{CHOSEN_NAME: self._chosen})

    def _find(self) -> RegisteredModel | None:
        return next(iter(self.client.search_registered_models(f"name = '{self.name}'")), None)

    def _aliased(self, alias: str) -> tuple[str, str, str, str] | None:
        """Version, digest, content and artifact folder: from the home's database if possible, else MLflow."""
        if self.is_own:
            if not self.database.exists():
                return None
            self.settle()
            with suppress(LookupError):
                return aliased_version(self.database, self.name, alias)
        model = self._find()
        if model is None or not (number := str(model.aliases.get(alias, ""))):
            return None
        tags = self.client.get_model_version(self.name, number).tags
        place = self.client.get_model_version_download_uri(self.name, number)
        return number, tags.get(DIGEST, ""), tags.get(CONTENT, ""), place

    def _downloaded(self, version: str, digest: str) -> Path:
        """Files of a version whose artifacts are elsewhere, fetched once a digest."""
        place = self.home / "champions" / digest[:16]
        if not place.is_dir():
            from mlflow.artifacts import download_artifacts

            place.parent.mkdir(parents=True, exist_ok=True)
            uris = {"tracking_uri": self.uri, "registry_uri": self.uri}
            with tempfile.TemporaryDirectory(dir=place.parent, ignore_cleanup_errors=True) as temporary:
                fetched = download_artifacts(f"models:/{self.name}/{version}", dst_path=temporary, **uris)
                shutil.rmtree(place, ignore_errors=True)
                os.rename(fetched, place)
        return place
