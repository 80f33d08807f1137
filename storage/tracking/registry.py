"""Which model serves: versions of one registered model, and the aliases ``challenger`` and ``champion``.

A version is found by the digest of its model files (tag ``guidespace.model``): the same model never becomes
two versions. ``champion`` is asked of MLflow each time, so moving the alias on MLflow's page is a rollback. A
registered model belongs to one home, which its tag ``guidespace.home`` names.
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
from storage.tracking.connection import CHOSEN_NAME, MODEL_NAME, Connection, TrackingError, aliased_version
from storage.tracking.model_files import CODE, write_model

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion as RegisteredVersion
    from mlflow.entities.model_registry import RegisteredModel

ABOUT = "Titles like this one: answers the nearest titles of the guide, also for an unseen title."
DIGEST = "guidespace.model"
CONTENT = "guidespace.content"  # digest of the files as registered; versions of before lack it
LINEAGE = "guidespace.lineage"
FEEDS = "guidespace.feeds"  # fingerprints of what a version was made of
PROMOTED_AT = "guidespace.promoted_at"
REASON = "guidespace.reason"
QUALITY = "guidespace.score.quality"
ROLLED_BACK = "guidespace.rolled_back_at"
MOST_VERSIONS = 1_000  # that a rollback looks through
HOME = "guidespace.home"
DESCRIPTION_LENGTH = 5000  # MLflow's column
FILES, REMOVED = "guidespace.files", "removed"  # tag of a version whose files a clean-up has removed
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
        self,
        run_id: str,
        model_folder: Path,
        digest: str,
        *,
        example_title: str,
        lineage: str,
        feeds: Sequence[str] = (),
    ) -> str:
        """Registers a model as ``challenger`` unless a version of that digest exists; returns the version.

        The run's outputs show it; versions of one ``lineage`` were scored on comparable held-out sets;
        ``feeds`` are fingerprints. A TrackingError where the registered model is another home's.
        """
        from mlflow.entities import LoggedModelOutput

        self._claim()
        if (version := self.version_of(digest)) is None:
            tags = {DIGEST: digest, CONTENT: content_digest(model_folder), LINEAGE: lineage}
            tags |= {HOME: make_home_id(self.home), FEEDS: " ".join(feeds)}
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

    def lineage_of(self, version: str) -> tuple[str, frozenset[str]]:
        """Lineage of a version, and fingerprints of its feeds; none of one that an older GuideSpace made."""
        tags = self.client.get_model_version(self.name, version).tags
        return tags.get(LINEAGE, ""), frozenset(tags.get(FEEDS, "").split())

    def describe(self, version: str, text: str) -> None:
        """Sets the description (Markdown) of a version, which MLflow's page shows on top."""
        self.client.update_model_version(self.name, version, text)

    def add_card(self, version: str, card: str) -> None:
        """Puts a model card ("## …") below the description of a version, in place of an earlier one."""
        before = self.client.get_model_version(self.name, version).description or ""
        text = f"{before.partition(card.splitlines()[0])[0].rstrip()}\n\n{card}"
        self.describe(version, text[:DESCRIPTION_LENGTH].strip())

    def version_of(self, digest: str) -> RegisteredVersion | None:
        """The newest version of that digest whose files still exist."""
        query = f"name = '{self.name}' AND tags.`{DIGEST}` = '{digest}'"
        for version in self.client.search_model_versions(query, order_by=["version_number DESC"]):
            if self._has_files(version):
                return version
        return None

    def promote(self, version: str, reason: str, *, at: datetime, quality: float | None = None) -> None:
        """Moves the alias ``champion`` and records when, why and at which quality."""
        tags = {PROMOTED_AT: at.astimezone(UTC).isoformat()}
        tags |= {} if quality is None else {QUALITY: repr(quality)}
        self._tag(version, {**tags, REASON: reason})
        if ROLLED_BACK in self.client.get_model_version(self.name, version).tags:
            self.client.delete_model_version_tag(self.name, version, ROLLED_BACK)
        self.client.set_registered_model_alias(self.name, "champion", version)

    def refuse(self, version: str, reason: str) -> None:
        """Records why a version was not promoted."""
        self._tag(version, {REASON: reason})

    def rollback(self, *, at: datetime) -> tuple[str, str]:
        """Gives the alias ``champion`` to the version that had it before; returns the old and the new one.

        The version that loses it is no longer among the promoted ones: the gate leaves it out
        (``rolled_back``), and another rollback goes further back.

        Raises:
            TrackingError: No version is champion, or none whose files exist was promoted before it.
        """
        model = self._find()
        if model is None or not (present := str(model.aliases.get("champion", ""))):
            raise TrackingError(f"no version of {self.name} is champion: there is nothing to roll back")
        before = [one.version for one in self.promoted(limit=MOST_VERSIONS)]
        older = before[before.index(present) + 1 :] if present in before else before
        for version in older:
            found = self.client.get_model_version(self.name, version)
            if self._has_files(found):
                self._tag(present, {ROLLED_BACK: at.astimezone(UTC).isoformat()})
                self.client.set_registered_model_alias(self.name, "champion", version)
                return present, version
        raise TrackingError(
            f"no version of {self.name} that still has its files was promoted before version {present}; "
            "it stays champion"
        )

    def rolled_back(self, version: str) -> str:
        """The day on which a person took a version back; empty where nobody did."""
        return self.client.get_model_version(self.name, version).tags.get(ROLLED_BACK, "")[:10]

    def _tag(self, version: str, tags: dict[str, str]) -> None:
        for key, value in tags.items():
            self.client.set_model_version_tag(self.name, version, key, value)

    @staticmethod
    def _has_files(version: RegisteredVersion) -> bool:
        gone = str(version.source).startswith("/") and not Path(str(version.source)).is_dir()
        return not gone and version.tags.get(FILES) != REMOVED

    def promoted(self, lineage: str = "", limit: int = 30) -> list[ModelVersion]:
        """The versions promoted last (of one lineage, where given), newest first, with the champion; without
        those that a person took back.
        """
        query = f"name = '{self.name}' AND tags.`{PROMOTED_AT}` != ''"
        query += f" AND tags.`{LINEAGE}` = '{lineage}'" if lineage else ""
        versions = self.client.search_model_versions(query)
        found = [(one.tags, int(one.version)) for one in versions if ROLLED_BACK not in one.tags]
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
        shown = {name: value for name, value in facts.items() if name != FEEDS}  # its tags are bounded
        model = client.create_logged_model(experiment, MODEL_NAME, run_id, shown, params, "title-search")
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
                replace_folder(Path(fetched), place)
        return place
