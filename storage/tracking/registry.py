"""Which model serves: versions of one registered model, and the aliases ``challenger`` and ``champion``.

A version is found by the digest of its model files (tag ``guidespace.model``): the same model never becomes two versions.
``champion`` is asked of MLflow each time, so moving the alias in MLflow's own page is a rollback.

A registered model belongs to one home: model_names.py has its name, and its tag ``guidespace.home`` says whose it is.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from storage.identity import make_home_id, write_marker
from storage.tracking.connection import Connection, TrackingError
from storage.tracking.local_database import aliased_version
from storage.tracking.model_files import CODE, write_model
from storage.tracking.model_names import CHOSEN, MODEL_NAME, is_own, model_name
from storage.tracking.versions import (
    DIGEST,
    HOME,
    LINEAGE,
    LOGGED_MODEL,
    PROMOTED_AT,
    QUALITY,
    REASON,
    Champion,
    ModelVersion,
    all_versions,
    described,
    find_model,
    versions_of_home,
)

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion as RegisteredVersion
    from mlflow.tracking import MlflowClient

ABOUT = "Titles like this one: answers the nearest titles of the guide, also for a title never seen."


class Registry:
    """The registered model of a home.

    Args:
        home: Holds mlflow.db and mlflow/ where MLFLOW_TRACKING_URI names no server. See Connection about homes that move.
        code: The file that MLflow runs to serve a model.
        name: Of the registered model; empty is the default of model_names.py, None the one that the home's last run used.
    """

    def __init__(self, home: Path | str, code: Path = CODE, name: str | None = None) -> None:
        self.connection = Connection(home)
        self.code = code
        self._chosen = name

    @property
    def name(self) -> str:
        """Name of the registered model in MLflow."""
        return model_name(self.connection, self._chosen)

    @property
    def client(self) -> MlflowClient:
        """MLflow's own client."""
        return self.connection.client

    # -- a model becomes a version -----------------------------------------------------------------------------------

    def register(self, run_id: str, model_folder: Path, digest: str, *, example_title: str, lineage: str) -> str:
        """Logs a model and registers it, unless a version of that digest is there, and gives it the alias ``challenger``.

        Args:
            run_id: The MLflow run that made it (a run that finds its model registered is linked to that one).
            model_folder: What TitleSearch opens.
            digest: Of the model folder.
            example_title: A title for the input example.
            lineage: See ModelVersion.

        Returns:
            The version.

        Raises:
            TrackingError: The registered model is another home's.
        """
        self._claim()
        version = self.version_of(digest)
        if version is None:
            model_id = self._log_model(run_id, model_folder, digest, example_title, lineage)
            version = self._create_version(run_id, model_id, {DIGEST: digest, LINEAGE: lineage})
        self._link(run_id, version)
        self.client.set_registered_model_alias(self.name, "challenger", version.version)
        return str(version.version)

    def logged_model(self, version: str) -> str:
        """Id of the logged model behind a version: what metrics are linked to."""
        return self.client.get_model_version(self.name, version).tags.get(LOGGED_MODEL, "")

    def describe(self, version: str, text: str) -> None:
        """Sets the description of a version (Markdown), which MLflow's page shows on top."""
        self.client.update_model_version(self.name, version, text)

    def version_of(self, digest: str) -> RegisteredVersion | None:
        """The newest version of that digest whose files are still there."""
        found = self.client.search_model_versions(
            f"name = '{self.name}' AND tags.`{DIGEST}` = '{digest}'", order_by=["version_number DESC"]
        )
        for version in found:
            source = version.source or ""
            if not source.startswith("/") or Path(source).is_dir():
                return version
        return None

    # -- a version is promoted ---------------------------------------------------------------------------------------

    def promote(self, version: str, reason: str, *, at: datetime, quality: float | None = None) -> None:
        """Moves the alias ``champion`` and writes down when, why and at which quality.

        Args:
            version: Of the registered model.
            reason: The gate's words.
            at: The instant of the decision.
            quality: What later challengers of its lineage are held to.
        """
        tags = {PROMOTED_AT: at.astimezone(UTC).isoformat(), REASON: reason} | (
            {} if quality is None else {QUALITY: repr(quality)}
        )
        for key, value in tags.items():
            self.client.set_model_version_tag(self.name, version, key, value)
        self.client.set_registered_model_alias(self.name, "champion", version)

    def promoted(self, lineage: str = "", limit: int = 30) -> list[ModelVersion]:
        """The versions promoted last (of one lineage, where one is given), newest first, the champion among them."""
        found = [
            version
            for version in all_versions(self.client, self.name)
            if PROMOTED_AT in version.tags and (not lineage or version.tags.get(LINEAGE) == lineage)
        ]
        found.sort(key=lambda version: (datetime.fromisoformat(version.tags[PROMOTED_AT]), int(version.version)), reverse=True)
        return [described(version) for version in found[:limit]]

    def champion(self) -> Champion | None:
        """The version that the alias ``champion`` names, with its files; None when there is none.

        Raises:
            TrackingError: Its files are gone.
        """
        found = self._aliased("champion")
        if found is None:
            return None
        name, version, digest, place = found
        folder = (
            Path(place.removeprefix("file://"))
            if place.startswith(("/", "file:///"))
            else self._downloaded(name, version, digest)
        )
        models = sorted((folder / "artifacts").glob("*")) if folder.is_dir() else []
        if len(models) != 1:
            raise TrackingError(
                f"the champion, version {version} of {name}, has no files in {folder}. "
                "Run `guidespace nightly` again with --set publish.promote=always, or give the alias to another version."
            )
        return Champion(version=version, digest=digest, folder=models[0])

    # -- inside ------------------------------------------------------------------------------------------------------

    def _log_model(self, run_id: str, model_folder: Path, digest: str, example_title: str, lineage: str) -> str:
        """Makes MLflow's logged model; returns its id. Nothing here touches MLflow's global state."""
        facts = {DIGEST: digest, LINEAGE: lineage}
        params = self.client.get_run(run_id).data.params
        experiment = self.connection.experiment_id
        model = self.client.create_logged_model(
            experiment, MODEL_NAME, run_id, tags=facts, params=params, model_type="title-search"
        )
        try:
            with tempfile.TemporaryDirectory() as temporary:
                folder = Path(temporary) / "model"
                write_model(folder, self.code, model_folder, example_title=example_title, metadata=facts, model_id=model.model_id, run_id=run_id)
                self.client.log_model_artifacts(model.model_id, str(folder))
        except BaseException:
            self.client.finalize_logged_model(model.model_id, "FAILED")
            raise
        self.client.finalize_logged_model(model.model_id, "READY")
        return model.model_id

    def _create_version(self, run_id: str, model_id: str, tags: dict[str, str]) -> RegisteredVersion:
        # A server resolves models:/ID by itself; the SQLite store would ask MLflow's global address, which is not ours to set.
        location = self.client.get_logged_model(model_id).artifact_location
        source = f"models:/{model_id}" if self.connection.uri.startswith("http") else location
        tags = {**tags, LOGGED_MODEL: model_id}
        version = self.client.create_model_version(self.name, source, run_id, tags=tags, model_id=model_id)
        self.client.set_logged_model_tags(
            model_id, {"mlflow.modelVersions": json.dumps([{"name": self.name, "version": version.version}])}
        )
        return version

    def _link(self, run_id: str, version: RegisteredVersion) -> None:
        """Shows the model among the outputs of the run."""
        from mlflow.entities import LoggedModelOutput

        model_id = version.tags.get(LOGGED_MODEL)
        outputs = self.client.get_run(run_id).outputs
        if model_id and model_id not in {output.model_id for output in (outputs.model_outputs if outputs else [])}:
            self.client.log_outputs(run_id, [LoggedModelOutput(model_id, step=0)])

    def _claim(self) -> None:
        """Makes the registered model, the first time with the champion of the old shared name; or sees that it is ours."""
        home, own = self.connection.home, make_home_id(self.connection.home)
        model = find_model(self.client, self.name)
        if model is None:
            versions, champion = self._inherited()
            self.client.create_registered_model(self.name, {HOME: own}, ABOUT)
            for old in versions:
                same = {
                    "tags": old.tags,
                    "description": old.description,
                    "model_id": old.tags.get(LOGGED_MODEL),
                }
                new = self.client.create_model_version(self.name, str(old.source), old.run_id, **same)
                if champion is old:
                    self.client.set_registered_model_alias(self.name, "champion", new.version)
        elif not is_own(self.connection) and (owner := model.tags.get(HOME, own)) != own:
            raise TrackingError(
                f"the registered model {self.name} in this MLflow belongs to the home {owner}; {home} is {own}. "
                "Set publish.registered_model to another name, or leave it empty for a name of this home's own."
            )
        else:
            self.client.set_registered_model_tag(self.name, HOME, own)
        if self._chosen is not None:  # for whoever reads this home
            write_marker(home, **{CHOSEN: self._chosen})

    def _inherited(self) -> tuple[list[RegisteredVersion], RegisteredVersion | None]:
        """This home's promoted versions, and its champion, under the name that all homes on a server once shared."""
        model = (
            None
            if is_own(self.connection) or not self.name.startswith(f"{MODEL_NAME}-")
            else find_model(self.client, MODEL_NAME)
        )
        if model is None or HOME in model.tags:
            return [], None
        versions = versions_of_home(self.connection.home, all_versions(self.client, MODEL_NAME))
        alias = str(model.aliases.get("champion", ""))
        return versions, next(
            (version for version in versions if str(version.version) == alias),
            versions[-1] if versions else None,
        )

    def _aliased(self, alias: str) -> tuple[str, str, str, str] | None:
        """Name, version, digest and artifact folder: from the home's database if it can be read, else from MLflow."""
        if self.connection.is_local:
            if not self.connection.database.exists():
                return None
            self.connection.settle()
            try:
                found = aliased_version(self.connection.database, self.name, alias)
                return (self.name, *found) if found else None
            except LookupError:
                pass
        model = find_model(self.client, self.name)
        if model is None:
            version = self._inherited()[1]
        elif alias in model.aliases:
            version = self.client.get_model_version(self.name, str(model.aliases[alias]))
        else:
            version = None
        if version is None:
            return None
        return (
            version.name,
            str(version.version),
            version.tags.get(DIGEST, ""),
            self.client.get_model_version_download_uri(version.name, version.version),
        )

    def _downloaded(self, name: str, version: str, digest: str) -> Path:
        """Files of a version whose artifacts are elsewhere, fetched once a digest."""
        place = self.connection.home / "champions" / digest[:16]
        if not place.is_dir():
            from mlflow.artifacts import download_artifacts

            place.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=place.parent, ignore_cleanup_errors=True) as temporary:
                uri = self.connection.uri
                fetched = download_artifacts(
                    artifact_uri=f"models:/{name}/{version}",
                    dst_path=temporary,
                    tracking_uri=uri,
                    registry_uri=uri,
                )
                shutil.rmtree(place, ignore_errors=True)
                os.rename(fetched, place)
        return place
