"""Registers models in MLflow, and moves the aliases ``champion`` (the served version) and ``challenger``.

A version is identified by the digest of the Model artifact (tag ``guidespace.model``), so registering a model
twice creates one version. The alias ``champion`` is read from MLflow on each call, so a user can also move it
in MLflow's UI. A registered model belongs to one home (tag ``guidespace.home``).
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
from storage.tracking.champion import CONTENT, AliasedVersion, Champion, ChampionRecord, verify_files
from storage.tracking.connection import NAME_KEY, Connection, TrackingError, aliased_version
from storage.tracking.model_files import log_model

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion as RegisteredVersion
    from mlflow.entities.model_registry import RegisteredModel

DESCRIPTION = "Returns the titles of the guide that are most similar to a title, including unseen titles."
DIGEST, LINEAGE = "guidespace.model", "guidespace.lineage"
FEEDS = "guidespace.feeds"  # tag with fingerprints of the feeds with which a version was trained
PROMOTED_AT, REASON = "guidespace.promoted_at", "guidespace.reason"
QUALITY = "guidespace.score.quality"
ROLLED_BACK_AT = "guidespace.rolled_back_at"
MAX_ROLLBACK_VERSIONS = 1_000  # promoted versions that ``rollback`` considers
HOME = "guidespace.home"
DESCRIPTION_LENGTH = 5000  # MLflow's limit
FILES, REMOVED = "guidespace.files", "removed"  # tag and value of versions whose files were removed
LOGGED_MODEL = "guidespace.logged_model"  # MLflow's SQL store does not save the model_id of a version


class ModelVersion(NamedTuple):
    """Number of a version that was champion, and its score on held-out titles (None: there were none)."""

    version: str
    quality: float | None


class Registry(Connection):
    """The registered model of a home in MLflow, and its versions.

    Args:
        home: The home folder.
        code: File that MLflow executes to load a version; only ``register`` needs it.
        name: Name of the registered model; None for the name in home.json (see Connection.model_name).
    """

    def __init__(self, home: Path | str, code: Path | None = None, name: str | None = None) -> None:
        super().__init__(home)
        self.code, self._chosen_name = code, name
        self.problem = ""  # reason why a newer version is not used; only FollowedModel sets it

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
        """Registers a model unless it is registered, moves the alias ``challenger``, and returns the version.

        Args:
            run_id: MLflow run, of which the model becomes an output.
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
            tags = {DIGEST: digest, CONTENT: content_digest(model_folder), LINEAGE: lineage}
            tags |= {HOME: make_home_id(self.home), FEEDS: " ".join(feeds)}
            version = self._create_version(run_id, model_folder, example_title, tags)
        outputs = self.client.get_run(run_id).outputs
        listed_ids = {output.model_id for output in outputs.model_outputs} if outputs else set()
        if (model_id := version.tags.get(LOGGED_MODEL)) and model_id not in listed_ids:
            self.client.log_outputs(run_id, [LoggedModelOutput(model_id, step=0)])
        self.client.set_registered_model_alias(self.name, "challenger", version.version)
        return str(version.version)

    def logged_model(self, version: str) -> str:
        """Returns the id of the MLflow logged model of a version, to which metrics are linked."""
        return self.client.get_model_version(self.name, version).tags.get(LOGGED_MODEL, "")

    def lineage_of(self, version: str) -> tuple[str, frozenset[str]]:
        """Returns the lineage (id of the held-out sets) and the fingerprints of the feeds of a version."""
        tags = self.client.get_model_version(self.name, version).tags
        return tags.get(LINEAGE, ""), frozenset(tags.get(FEEDS, "").split())

    def describe(self, version: str, text: str) -> None:
        """Sets the description of a version, in Markdown."""
        self.client.update_model_version(self.name, version, text)

    def add_card(self, version: str, card: str) -> None:
        """Appends a model card ("## …") to the description of a version; replaces an earlier card."""
        description = self.client.get_model_version(self.name, version).description or ""
        text = f"{description.partition(card.splitlines()[0])[0].rstrip()}\n\n{card}"
        self.describe(version, text[:DESCRIPTION_LENGTH].strip())

    def version_of(self, digest: str) -> RegisteredVersion | None:
        """Returns the newest version whose Model artifact has the digest and whose files exist, or None."""
        query = f"name = '{self.name}' AND tags.`{DIGEST}` = '{digest}'"
        for version in self.client.search_model_versions(query, order_by=["version_number DESC"]):
            if self._has_files(version):
                return version
        return None

    def promote(self, version: str, reason: str, *, at: datetime, quality: float | None = None) -> None:
        """Moves the alias ``champion`` to a version, and records time, reason and quality (score) as tags."""
        tags = {PROMOTED_AT: at.astimezone(UTC).isoformat(), REASON: reason}
        self._tag(version, tags if quality is None else {**tags, QUALITY: repr(quality)})
        if ROLLED_BACK_AT in self.client.get_model_version(self.name, version).tags:
            self.client.delete_model_version_tag(self.name, version, ROLLED_BACK_AT)
        self._set_champion(version)

    def refuse(self, version: str, reason: str) -> None:
        """Records the reason why a version was not made champion."""
        self._tag(version, {REASON: reason})

    def rollback(self, *, at: datetime) -> tuple[str, str]:
        """Restores the previous champion. Returns the version that was champion before, and the new champion.

        The version that was champion gets the tag ``rolled_back``, and is not restored by later rollbacks.

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
                self._tag(current, {ROLLED_BACK_AT: at.astimezone(UTC).isoformat()})
                self._set_champion(version)
                return current, version
        raise TrackingError(
            f"no version of {self.name} with files was promoted before version {current}; it stays champion"
        )

    def rollback_day(self, version: str) -> str:
        """Returns the day (ISO, UTC) on which a version was rolled back, or an empty string."""
        return self.client.get_model_version(self.name, version).tags.get(ROLLED_BACK_AT, "")[:10]

    def _set_champion(self, version: str) -> None:
        """Moves the alias ``champion``, and updates champion.json for processes without MLflow."""
        self.client.set_registered_model_alias(self.name, "champion", version)
        if self.uses_home_database:
            ChampionRecord(self.home).remove()
        else:
            self.champion()

    def _tag(self, version: str, tags: dict[str, str]) -> None:
        for key, value in tags.items():
            self.client.set_model_version_tag(self.name, version, key, value)

    @staticmethod
    def _has_files(version: RegisteredVersion) -> bool:
        is_missing = str(version.source).startswith("/") and not Path(str(version.source)).is_dir()
        return not is_missing and version.tags.get(FILES) != REMOVED

    def promoted(self, lineage: str = "", limit: int = 30) -> list[ModelVersion]:
        """Returns the last champions of a lineage (same held-out sets) that were not rolled back."""
        versions = self._list_promoted(lineage)[:limit]
        pairs = ((str(version.version), version.tags.get(QUALITY)) for version in versions)
        return [ModelVersion(number, float(quality) if quality else None) for number, quality in pairs]

    def oldest_promoted(self, lineage: str) -> Champion | None:
        """Returns the first promoted version of a lineage (same held-out sets) whose files exist, or None."""
        for version in filter(self._has_files, reversed(self._list_promoted(lineage))):
            with suppress(TrackingError):  # its files were changed
                return self._open(self._locate_files(version))
        return None

    def _list_promoted(self, lineage: str) -> list[RegisteredVersion]:
        """Returns the versions that were made champion and not rolled back, newest first."""
        lineage_filter = f" AND tags.`{LINEAGE}` = '{lineage}'" if lineage else ""
        query = f"name = '{self.name}' AND tags.`{PROMOTED_AT}` != ''{lineage_filter}"
        promoted = self.client.search_model_versions(query)
        kept = [version for version in promoted if ROLLED_BACK_AT not in version.tags]
        return sorted(kept, key=lambda entry: (entry.tags[PROMOTED_AT], int(entry.version)), reverse=True)

    def champion(self) -> Champion | None:
        """Returns the version with the alias ``champion`` and its local files, or None if there is none.

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
        """Logs a model to MLflow and registers it as a new version, without MLflow's global state."""
        if self.code is None:
            raise ValueError("code is None; expected the file that MLflow executes to load a version")
        client, inputs = self.client, (self.code, model_folder, example_title)
        model_tags = {name: value for name, value in tags.items() if name != FEEDS}  # would exceed the limit
        model = log_model(client, self.experiment_id, run_id, *inputs, model_tags)
        # a server resolves models:/ID; the SQLite store would resolve it with MLflow's global tracking URI
        source = f"models:/{model.model_id}" if self.uri.startswith("http") else model.artifact_location
        tags = {**tags, LOGGED_MODEL: model.model_id}
        version = client.create_model_version(self.name, source, run_id, tags, model_id=model.model_id)
        versions = json.dumps([{"name": self.name, "version": version.version}])
        client.set_logged_model_tags(model.model_id, {"mlflow.modelVersions": versions})
        return version

    def _create_or_verify_model(self) -> None:
        """Creates the registered model if it is missing, or verifies that it belongs to this home."""
        home_id = make_home_id(self.home)
        model = self._registered_model()
        if model is None:
            self.client.create_registered_model(self.name, {HOME: home_id}, DESCRIPTION)
        elif not self.uses_home_database and (owner := model.tags.get(HOME, home_id)) != home_id:
            raise TrackingError(
                f"the registered model {self.name} in this MLflow belongs to the home {owner}; {self.home} "
                f"is {home_id}. Set publish.registered_model to another name, or to '' for the default."
            )
        else:
            self.client.set_registered_model_tag(self.name, HOME, home_id)
        if self._chosen_name is not None:  # readers of this home use the same name
            write_marker(self.home, **{NAME_KEY: self._chosen_name})

    def _registered_model(self) -> RegisteredModel | None:
        return next(iter(self.client.search_registered_models(f"name = '{self.name}'")), None)

    def _aliased_version(self, alias: str) -> AliasedVersion | None:
        """Returns the version with an alias, from champion.json, mlflow.db or the MLflow client."""
        record = None if self._chosen_name or is_installed("mlflow") else ChampionRecord(self.home).read()
        if record is not None:
            return record
        if self.uses_home_database:
            if not self.database.exists():
                return None
            self.repair_moved_home()
            with suppress(LookupError):
                row = aliased_version(self.database, self.name, alias)
                return AliasedVersion(*row) if row else None
        model = self._registered_model()
        if model is None or not (version := str(model.aliases.get(alias, ""))):
            return None
        return self._locate_files(self.client.get_model_version(self.name, version))

    def _locate_files(self, version: RegisteredVersion) -> AliasedVersion:
        """Returns the digests of a version and the location of its files."""
        location = self.client.get_model_version_download_uri(self.name, str(version.version))
        digest, content = (version.tags.get(tag, "") for tag in (DIGEST, CONTENT))
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
