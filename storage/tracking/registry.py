"""Registers models in MLflow, and moves the aliases ``champion`` (the served version) and ``challenger``.

A version is identified by the digest of the Model artifact (tag ``guidespace.model``), so a model that is
registered twice has one version. The alias ``champion`` is read from MLflow on each call, so users can also
move it in MLflow's UI. A registered model belongs to one home (tag ``guidespace.home``).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from storage.atomic import replace_folder
from storage.digests import content_digest
from storage.home.identity import make_home_id
from storage.home.marker import write_marker
from storage.installed import is_installed
from storage.tracking.champion import AliasedVersion, Champion, ChampionRecord, verify_files
from storage.tracking.connection import NAME_KEY, Connection, TrackingError, read_aliased_version
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


class Registry(Connection):
    """Gives access to the model that a home has registered in MLflow, and to the versions of this model.

    Args:
        home: The home folder.
        code: File that MLflow executes to load a version; only ``register`` needs it.
        name: Name of the registered model; None for the name in home.json (see Connection.model_name).
    """

    def __init__(self, home: Path | str, code: Path | None = None, name: str | None = None) -> None:
        super().__init__(home)
        self.code, self._chosen_name = code, name

    @property
    def name(self) -> str:
        """Returns the name of the registered model in MLflow."""
        return self.model_name(self._chosen_name)

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
        outputs = self.client.get_run(run_id).outputs
        listed_ids = {output.model_id for output in outputs.model_outputs} if outputs else set()
        if (model_id := version.tags.get(VersionTag.LOGGED_MODEL)) and model_id not in listed_ids:
            self.client.log_outputs(run_id, [LoggedModelOutput(model_id, step=0)])
        self.client.set_registered_model_alias(self.name, "challenger", version.version)
        return str(version.version)

    def logged_model(self, version: str) -> str:
        """Returns the id of the MLflow logged model of a version, to which metrics are linked."""
        return self.client.get_model_version(self.name, version).tags.get(VersionTag.LOGGED_MODEL, "")

    def lineage_of(self, version: str) -> tuple[str, frozenset[str]]:
        """Returns the lineage (id of the held-out sets) and the fingerprints of the feeds of a version."""
        tags = self.client.get_model_version(self.name, version).tags
        return tags.get(VersionTag.LINEAGE, ""), frozenset(tags.get(VersionTag.FEEDS, "").split())

    def describe(self, version: str, text: str) -> None:
        """Sets the description of a version, in Markdown."""
        self.client.update_model_version(self.name, version, text)

    def add_card(self, version: str, card: str) -> None:
        """Appends a model card ("## …") to the description of a version, in place of an earlier card."""
        description = self.client.get_model_version(self.name, version).description or ""
        text = f"{description.partition(card.splitlines()[0])[0].rstrip()}\n\n{card}"
        self.describe(version, text[:DESCRIPTION_LENGTH].strip())

    def version_of(self, digest: str) -> RegisteredVersion | None:
        """Returns the newest version of the Model artifact with a digest whose files exist, or None."""
        query = f"name = '{self.name}' AND tags.`{VersionTag.DIGEST}` = '{digest}'"
        versions = self.client.search_model_versions(query, order_by=["version_number DESC"])
        return next(filter(self._has_files, versions), None)

    def promote(self, version: str, reason: str, *, at: datetime, quality: float | None = None) -> None:
        """Moves the alias ``champion`` to a version; stores time, reason and quality (score) as tags."""
        tags = {VersionTag.PROMOTED_AT: at.astimezone(UTC).isoformat(), VersionTag.REASON: reason}
        self._set_tags(version, tags if quality is None else {**tags, VersionTag.QUALITY: repr(quality)})
        if VersionTag.ROLLED_BACK_AT in self.client.get_model_version(self.name, version).tags:
            self.client.delete_model_version_tag(self.name, version, VersionTag.ROLLED_BACK_AT)
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
        model = self._registered_model()
        if model is None or not (current := str(model.aliases.get("champion", ""))):
            raise TrackingError(f"no version of {self.name} is champion, so there is nothing to roll back")
        versions = [version.version for version in self.promoted(limit=MAX_ROLLBACK_VERSIONS)]
        first_older = versions.index(current) + 1 if current in versions else 0
        for version in versions[first_older:]:
            if self._has_files(self.client.get_model_version(self.name, version)):
                self._set_tags(current, {VersionTag.ROLLED_BACK_AT: at.astimezone(UTC).isoformat()})
                self._set_champion(version)
                return current, version
        raise TrackingError(
            f"no version of {self.name} with files was promoted before version {current}; it stays champion"
        )

    def rollback_day(self, version: str) -> str:
        """Returns the day (ISO, UTC) on which a version was rolled back, or an empty string."""
        return self.client.get_model_version(self.name, version).tags.get(VersionTag.ROLLED_BACK_AT, "")[:10]

    def _set_champion(self, version: str) -> None:
        """Moves the alias ``champion``, and updates champion.json for processes without MLflow."""
        self.client.set_registered_model_alias(self.name, "champion", version)
        if self.uses_home_database:
            ChampionRecord(self.home).remove()
        else:
            self.champion()

    def _set_tags(self, version: str, tags: dict[str, str]) -> None:
        """Sets tags of a version."""
        for key, value in tags.items():
            self.client.set_model_version_tag(self.name, version, key, value)

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
                return self._open(self._locate_files(version))
        return None

    def _list_promoted(self, lineage: str) -> list[RegisteredVersion]:
        """Returns the versions that were promoted and not rolled back, the last promoted version first."""
        lineage_filter = f" AND tags.`{VersionTag.LINEAGE}` = '{lineage}'" if lineage else ""
        query = f"name = '{self.name}' AND tags.`{VersionTag.PROMOTED_AT}` != ''{lineage_filter}"
        promoted = self.client.search_model_versions(query)
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
        if (aliased := self._aliased_version("champion")) is None:
            return None
        champion = self._open(aliased)
        if not self.uses_home_database and is_installed("mlflow") and self.name == self.model_name(None):
            ChampionRecord(self.home).write(aliased, champion.folder.parents[1])
        return champion

    def _open(self, version: AliasedVersion) -> Champion:
        """Downloads the files of a version if they are on a server, and verifies them."""
        if version.location.startswith(("/", "file:///")):
            return verify_files(self.name, version, Path(version.location.removeprefix("file://")))
        return verify_files(self.name, version, self._download(version.version, version.digest))

    def _create_version(
        self, run_id: str, model_folder: Path, example_title: str, tags: dict[str, str]
    ) -> RegisteredVersion:
        """Creates a logged model and registers it as a new version, without the global state of MLflow."""
        if self.code is None:
            raise ValueError("code is None; expected the file that MLflow executes to load a version")
        client, experiment = self.client, self.experiment_id
        # logged models do not get the fingerprints of feeds, which can exceed MLflow's limit for their tags
        model_tags = {name: value for name, value in tags.items() if name != VersionTag.FEEDS}
        model = log_model(client, experiment, run_id, self.code, model_folder, example_title, model_tags)
        # A server resolves models:/ID. The SQLite store would resolve it with MLflow's global tracking URI.
        source = f"models:/{model.model_id}" if self.uri.startswith("http") else model.artifact_location
        tags = {**tags, VersionTag.LOGGED_MODEL: model.model_id}
        version = client.create_model_version(self.name, source, run_id, tags, model_id=model.model_id)
        versions = json.dumps([{"name": self.name, "version": version.version}])
        client.set_logged_model_tags(model.model_id, {"mlflow.modelVersions": versions})
        return version

    def _create_or_verify_model(self) -> None:
        """Creates the registered model if it is missing, or verifies that it belongs to this home."""
        home_id = make_home_id(self.home)
        model = self._registered_model()
        if model is None:
            self.client.create_registered_model(self.name, {HOME_TAG: home_id}, DESCRIPTION)
        elif not self.uses_home_database and (owner := model.tags.get(HOME_TAG, home_id)) != home_id:
            raise TrackingError(
                f"the registered model {self.name} in this MLflow belongs to the home {owner}; {self.home} "
                f"is {home_id}. Set publish.registered_model to another name, or to '' for the default name."
            )
        else:
            self.client.set_registered_model_tag(self.name, HOME_TAG, home_id)
        if self._chosen_name is not None:  # so that processes that serve the model use this name, too
            write_marker(self.home, **{NAME_KEY: self._chosen_name})

    def _registered_model(self) -> RegisteredModel | None:
        return next(iter(self.client.search_registered_models(f"name = '{self.name}'")), None)

    def _aliased_version(self, alias: str) -> AliasedVersion | None:
        """Returns the version with an alias according to champion.json, mlflow.db or the MLflow client."""
        uses_record = not (self._chosen_name or is_installed("mlflow"))
        if uses_record and (record := ChampionRecord(self.home).read()):
            return record
        if self.uses_home_database:
            if not self.database.exists():
                return None
            self.repair_moved_home()
            with suppress(LookupError):
                row = read_aliased_version(self.database, self.name, alias)
                return AliasedVersion(*row) if row else None
        model = self._registered_model()
        if model is None or not (version := str(model.aliases.get(alias, ""))):
            return None
        return self._locate_files(self.client.get_model_version(self.name, version))

    def _locate_files(self, version: RegisteredVersion) -> AliasedVersion:
        """Returns number and digests of a version with the location of its files."""
        location = self.client.get_model_version_download_uri(self.name, str(version.version))
        digest, content = (version.tags.get(tag, "") for tag in (VersionTag.DIGEST, VersionTag.CONTENT))
        return AliasedVersion(str(version.version), digest, content, location)

    def _download(self, version: str, digest: str) -> Path:
        """Downloads the files of a version unless they were downloaded before; returns their folder."""
        folder = self.home / "champions" / digest[:16]
        if not folder.is_dir():
            from mlflow.artifacts import download_artifacts

            folder.parent.mkdir(parents=True, exist_ok=True)
            uris = {"tracking_uri": self.uri, "registry_uri": self.uri}
            with tempfile.TemporaryDirectory(dir=folder.parent, ignore_cleanup_errors=True) as temporary:
                download = download_artifacts(f"models:/{self.name}/{version}", dst_path=temporary, **uris)
                replace_folder(Path(download), folder)
        return folder
