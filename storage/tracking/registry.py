"""Registers models in MLflow, and moves the aliases ``champion`` (the served version) and ``challenger``.

A version is identified by the digest of the Model artifact (tag ``guidespace.model``), so a model that is
registered twice has one version. The alias ``champion`` is read from MLflow on each call, so users can also
move it in MLflow's UI. A registered model belongs to one home (tag ``guidespace.home``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from storage.digests import content_digest
from storage.home.identity import make_home_id
from storage.home.marker import write_marker
from storage.installed import is_installed
from storage.tracking.champion import (
    Champion,
    ChampionRecord,
    LocatedVersion,
    locate_files,
    open_version,
    read_champion,
)
from storage.tracking.connection import NAME_KEY, MlflowConnection, TrackingError
from storage.tracking.model_files import log_model
from storage.tracking.tags import HOME_TAG, REMOVED_FILES, VersionTag

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion as RegisteredVersion
    from mlflow.entities.model_registry import RegisteredModel

DESCRIPTION = "Returns the titles of the guide that are most similar to a title, including unseen titles."
MAX_ROLLBACK_VERSIONS = 1_000  # maximum number of promoted versions among which ``rollback`` searches
DESCRIPTION_LENGTH = 5000  # MLflow's limit


class ModelVersion(NamedTuple):
    """Version of the registered model that was promoted to champion."""

    version: str  # number of the version
    quality: float | None  # score on held-out titles; None if there were no held-out titles


class Registry:
    """Gives access to the model that a home has registered in MLflow, and to the versions of this model.

    Args:
        home: The home folder.
        code: File that MLflow executes to load a version; only ``register`` needs it.
        name: Name of the registered model; None for the name in home.json (see MlflowConnection.model_name).
    """

    def __init__(self, home: Path | str, code: Path | None = None, name: str | None = None) -> None:
        self.mlflow, self.code, self._chosen_name = MlflowConnection(home), code, name
        self.home = self.mlflow.home

    @property
    def name(self) -> str:
        """Returns the name of the registered model in MLflow."""
        return self.mlflow.model_name(self._chosen_name)

    def register(
        self,
        run_id: str,
        model_folder: Path,
        digest: str,
        *,
        example_title: str,
        lineage: str,
        feeds: Sequence[str] = (),
    ) -> str:
        """Registers a model if it is new; returns its version, to which the alias ``challenger`` is moved.

        Args:
            run_id: Id of the MLflow run; the model becomes an output of this run.
            model_folder: Folder of the Model artifact.
            digest: Digest of the Model artifact.
            example_title: Title in the model's input example.
            lineage: Id of the held-out sets; scores of versions with the same lineage are comparable.
            feeds: Fingerprints of the feeds with which the model was trained.

        Raises:
            TrackingError: The registered model belongs to another home.
        """
        from mlflow.entities import LoggedModelOutput

        self._create_or_verify_model()
        if (version := self.version_of(digest)) is None:
            tags = {VersionTag.DIGEST: digest, VersionTag.CONTENT: content_digest(model_folder)}
            tags |= {VersionTag.LINEAGE: lineage, VersionTag.FEEDS: " ".join(feeds)}
            tags[HOME_TAG] = make_home_id(self.home)
            version = self._create_version(run_id, model_folder, example_title, tags)
        outputs = self.mlflow.client.get_run(run_id).outputs
        listed_ids = {output.model_id for output in outputs.model_outputs} if outputs else set()
        if (model_id := version.tags.get(VersionTag.LOGGED_MODEL)) and model_id not in listed_ids:
            self.mlflow.client.log_outputs(run_id, [LoggedModelOutput(model_id, step=0)])
        self.mlflow.client.set_registered_model_alias(self.name, "challenger", version.version)
        return str(version.version)

    def logged_model(self, version: str) -> str:
        """Returns the id of the MLflow logged model of a version, to which metrics are linked."""
        return self._tags(version).get(VersionTag.LOGGED_MODEL, "")

    def lineage_of(self, version: str) -> tuple[str, frozenset[str]]:
        """Returns the lineage (id of the held-out sets) and the fingerprints of the feeds of a version."""
        tags = self._tags(version)
        return tags.get(VersionTag.LINEAGE, ""), frozenset(tags.get(VersionTag.FEEDS, "").split())

    def describe(self, version: str, text: str) -> None:
        """Sets the description of a version, in Markdown."""
        self.mlflow.client.update_model_version(self.name, version, text)

    def add_card(self, version: str, card: str) -> None:
        """Appends a model card ("## …") to the description of a version, in place of an earlier card."""
        description = self.mlflow.client.get_model_version(self.name, version).description or ""
        text = f"{description.partition(card.splitlines()[0])[0].rstrip()}\n\n{card}"
        self.describe(version, text[:DESCRIPTION_LENGTH].strip())

    def version_of(self, digest: str) -> RegisteredVersion | None:
        """Returns the newest version of the Model artifact with a digest whose files exist, or None."""
        query = f"name = '{self.name}' AND tags.`{VersionTag.DIGEST}` = '{digest}'"
        versions = self.mlflow.client.search_model_versions(query, order_by=["version_number DESC"])
        return next(filter(self._has_files, versions), None)

    def promote(self, version: str, reason: str, *, at: datetime, quality: float | None = None) -> None:
        """Moves the alias ``champion`` to a version; stores time, reason and quality (score) as tags."""
        tags = {VersionTag.PROMOTED_AT: at.astimezone(UTC).isoformat(), VersionTag.REASON: reason}
        self._set_tags(version, tags if quality is None else {**tags, VersionTag.QUALITY: repr(quality)})
        if VersionTag.ROLLED_BACK_AT in self._tags(version):
            self.mlflow.client.delete_model_version_tag(self.name, version, VersionTag.ROLLED_BACK_AT)
        self._set_champion(version)

    def refuse(self, version: str, reason: str) -> None:
        """Records the reason why a version was not made champion."""
        self._set_tags(version, {VersionTag.REASON: reason})

    def rollback(self, *, at: datetime) -> tuple[str, str]:
        """Makes the previous champion the champion again; later rollbacks skip the current champion.

        Returns:
            The number of the version that was champion, and the number of the restored version.

        Raises:
            TrackingError: No version is champion, or the files of all earlier champions are missing.
        """
        model = self.registered_model()
        if model is None or not (current := str(model.aliases.get("champion", ""))):
            raise TrackingError(f"no version of {self.name} is champion, so there is nothing to roll back")
        versions = [version.version for version in self.promoted(limit=MAX_ROLLBACK_VERSIONS)]
        first_older = versions.index(current) + 1 if current in versions else 0
        for version in versions[first_older:]:
            if self._has_files(self.mlflow.client.get_model_version(self.name, version)):
                self._set_tags(current, {VersionTag.ROLLED_BACK_AT: at.astimezone(UTC).isoformat()})
                self._set_champion(version)
                return current, version
        raise TrackingError(
            f"no version of {self.name} with files was promoted before version {current}; it stays champion"
        )

    def rollback_day(self, version: str) -> str:
        """Returns the day (ISO, UTC) on which a version was rolled back, or an empty string."""
        return self._tags(version).get(VersionTag.ROLLED_BACK_AT, "")[:10]

    def _set_champion(self, version: str) -> None:
        """Moves the alias ``champion``, and updates champion.json for processes without MLflow."""
        self.mlflow.client.set_registered_model_alias(self.name, "champion", version)
        if self.mlflow.uses_home_database:
            ChampionRecord(self.home).remove()
        else:
            self.champion()

    def _tags(self, version: str) -> dict[str, str]:
        return self.mlflow.client.get_model_version(self.name, version).tags

    def _set_tags(self, version: str, tags: dict[str, str]) -> None:
        for key, value in tags.items():
            self.mlflow.client.set_model_version_tag(self.name, version, key, value)

    @staticmethod
    def _has_files(version: RegisteredVersion) -> bool:
        is_missing = str(version.source).startswith("/") and not Path(str(version.source)).is_dir()
        return not is_missing and version.tags.get(VersionTag.FILES) != REMOVED_FILES

    def promoted(self, lineage: str = "", limit: int = 30) -> list[ModelVersion]:
        """Returns the last ``limit`` versions that were promoted and not rolled back, newest first.

        If ``lineage`` is not empty, only versions of this lineage (with the same held-out sets) are returned.
        """
        versions = self._list_promoted(lineage)[:limit]
        pairs = ((str(version.version), version.tags.get(VersionTag.QUALITY)) for version in versions)
        return [ModelVersion(number, float(quality) if quality else None) for number, quality in pairs]

    def oldest_promoted(self, lineage: str) -> Champion | None:
        """Returns the first promoted version of a lineage (same held-out sets) whose files exist, or None."""
        for version in filter(self._has_files, reversed(self._list_promoted(lineage))):
            with suppress(TrackingError):  # the files have changed since the registration
                return open_version(self.mlflow, self.name, locate_files(self.mlflow, version))
        return None

    def _list_promoted(self, lineage: str) -> list[RegisteredVersion]:
        """Returns the versions that were promoted and not rolled back, the last promoted version first."""
        lineage_filter = f" AND tags.`{VersionTag.LINEAGE}` = '{lineage}'" if lineage else ""
        query = f"name = '{self.name}' AND tags.`{VersionTag.PROMOTED_AT}` != ''{lineage_filter}"
        promoted = self.mlflow.client.search_model_versions(query)
        versions = [version for version in promoted if VersionTag.ROLLED_BACK_AT not in version.tags]
        versions.sort(
            key=lambda version: (version.tags[VersionTag.PROMOTED_AT], int(version.version)), reverse=True
        )
        return versions

    def champion(self) -> Champion | None:
        """Returns the version with the alias ``champion`` and its local files; None if none has the alias.

        Raises:
            TrackingError: The files are missing or have changed since the registration.
        """
        if (version := self._find_champion()) is None:
            return None
        champion = open_version(self.mlflow, self.name, version)
        is_shared = not self.mlflow.uses_home_database
        if is_shared and is_installed("mlflow") and self.name == self.mlflow.model_name(None):
            ChampionRecord(self.home).write(version, champion.folder.parents[1])
        return champion

    def _create_version(
        self, run_id: str, model_folder: Path, example_title: str, tags: dict[str, str]
    ) -> RegisteredVersion:
        """Creates a logged model and registers it as a new version, without the global state of MLflow."""
        if self.code is None:
            raise ValueError("code is None; expected the file that MLflow executes to load a version")
        # logged models do not get the fingerprints of feeds, which can exceed MLflow's limit for their tags
        model_tags = {name: value for name, value in tags.items() if name != VersionTag.FEEDS}
        model = log_model(self.mlflow, run_id, self.code, model_folder, example_title, model_tags)
        # A server resolves models:/ID. The SQLite store would resolve it with MLflow's global tracking URI.
        is_server = self.mlflow.uri.startswith("http")
        source = f"models:/{model.model_id}" if is_server else model.artifact_location
        client, tags = self.mlflow.client, {**tags, VersionTag.LOGGED_MODEL: model.model_id}
        version = client.create_model_version(self.name, source, run_id, tags, model_id=model.model_id)
        versions = json.dumps([{"name": self.name, "version": version.version}])
        client.set_logged_model_tags(model.model_id, {"mlflow.modelVersions": versions})
        return version

    def _create_or_verify_model(self) -> None:
        """Creates the registered model if it is missing, or verifies that it belongs to this home."""
        home_id = make_home_id(self.home)
        model = self.registered_model()
        if model is None:
            self.mlflow.client.create_registered_model(self.name, {HOME_TAG: home_id}, DESCRIPTION)
        elif not self.mlflow.uses_home_database and (owner := model.tags.get(HOME_TAG, home_id)) != home_id:
            raise TrackingError(
                f"the registered model {self.name} in this MLflow belongs to the home {owner}; {self.home} "
                f"is {home_id}. Set publish.registered_model to another name, or to '' for the default name."
            )
        else:
            self.mlflow.client.set_registered_model_tag(self.name, HOME_TAG, home_id)
        if self._chosen_name is not None:  # so that processes that serve the model use this name, too
            write_marker(self.home, **{NAME_KEY: self._chosen_name})

    def registered_model(self) -> RegisteredModel | None:
        """Returns the registered model in MLflow; None if no version was registered yet."""
        return next(iter(self.mlflow.client.search_registered_models(f"name = '{self.name}'")), None)

    def _find_champion(self) -> LocatedVersion | None:
        """Finds the version with the alias ``champion``: in champion.json, mlflow.db or on the server."""
        uses_record = not (self._chosen_name or is_installed("mlflow"))
        if uses_record and (record := ChampionRecord(self.home).read()):
            return record
        if self.mlflow.uses_home_database:
            if not self.mlflow.database.exists():
                return None
            self.mlflow.repair_moved_home()
            with suppress(LookupError):
                return read_champion(self.mlflow.database, self.name)
        model = self.registered_model()
        if model is None or not (version := str(model.aliases.get("champion", ""))):
            return None
        return locate_files(self.mlflow, self.mlflow.client.get_model_version(self.name, version))
