"""Which model serves: versions of one registered model, and the aliases ``challenger`` and ``champion``.

A version is found by the digest of its model files (tag ``guidespace.model``): the same model never becomes two versions.
``champion`` is asked of MLflow each time, so moving the alias in MLflow's own page is a rollback.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storage.tracking.connection import Connection, TrackingError
from storage.tracking.local_database import aliased_version
from storage.tracking.metrics import flatten_scores
from storage.tracking.model_files import CODE, write_model

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion as RegisteredVersion
    from mlflow.tracking import MlflowClient

MODEL_NAME = "guidespace-titles"
DIGEST = "guidespace.model"
LINEAGE = "guidespace.lineage"
PROMOTED_AT = "guidespace.promoted_at"
REASON = "guidespace.reason"
SCORE = "guidespace.score."


@dataclass(frozen=True, kw_only=True)
class Champion:
    """The model that serves.

    Attributes:
        version: Of the registered model.
        digest: Of the model folder, as GuideSpace published it.
        folder: Its files on this machine; what TitleSearch opens.
    """

    version: str
    digest: str
    folder: Path


@dataclass(frozen=True, kw_only=True)
class ModelVersion:
    """A registered version that was promoted once.

    Attributes:
        scores: Metric name (``unseen_title/title_only/knn/accuracy``) to value, as at its promotion.
        lineage: Versions of one lineage were scored on comparable held-out sets.
        promoted_at: ISO 8601, UTC; the last time, when it was more than once.
    """

    version: str
    digest: str
    scores: dict[str, float]
    lineage: str
    promoted_at: str
    reason: str


class Registry:
    """The registered model ``guidespace-titles``.

    Args:
        home: Holds mlflow.db and mlflow/ where MLFLOW_TRACKING_URI names no server. See Connection about homes that move.
        code: The file that MLflow runs to serve a model.
    """

    def __init__(self, home: Path | str, code: Path = CODE) -> None:
        self.connection = Connection(home)
        self.code = code

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
        """
        version = self.version_of(digest)
        if version is None:
            model_id = self._log_model(run_id, model_folder, digest, example_title, lineage)
            version = self._create_version(run_id, model_id, {DIGEST: digest, LINEAGE: lineage})
        self._link(run_id, version)
        self.client.set_registered_model_alias(MODEL_NAME, "challenger", version.version)
        return str(version.version)

    def version_of(self, digest: str) -> RegisteredVersion | None:
        """The newest version of that digest whose files are still there."""
        found = self.client.search_model_versions(f"name = '{MODEL_NAME}' AND tags.`{DIGEST}` = '{digest}'", order_by=["version_number DESC"])
        for version in found:
            source = version.source or ""
            if not source.startswith("/") or Path(source).is_dir():
                return version
        return None

    # -- a version is promoted ---------------------------------------------------------------------------------------

    def promote(self, version: str, reason: str, *, at: datetime, scores: Mapping[str, Any] | None = None) -> None:
        """Moves the alias ``champion`` and writes down when, why and with which scores.

        Args:
            version: Of the registered model.
            reason: The gate's words.
            at: The instant of the decision.
            scores: The scores document (nested), kept flattened as tags ``guidespace.score.*``.
        """
        tags = {PROMOTED_AT: at.astimezone(UTC).isoformat(), REASON: reason}
        tags |= {f"{SCORE}{name}": repr(value) for name, value in flatten_scores(scores or {}).items()}
        for key, value in tags.items():
            self.client.set_model_version_tag(MODEL_NAME, version, key, value)
        self.client.set_registered_model_alias(MODEL_NAME, "champion", version)

    def promoted(self, limit: int = 30) -> list[ModelVersion]:
        """The versions promoted last, newest first, the champion among them."""
        found: list[RegisteredVersion] = []
        token: str | None = None
        while True:
            page = self.client.search_model_versions(f"name = '{MODEL_NAME}'", max_results=200, page_token=token)
            found += [version for version in page if PROMOTED_AT in version.tags]
            token = page.token
            if not token:
                break
        found.sort(key=lambda version: (datetime.fromisoformat(version.tags[PROMOTED_AT]), int(version.version)), reverse=True)
        return [_described(version) for version in found[:limit]]

    def champion(self) -> Champion | None:
        """The version that the alias ``champion`` names, with its files; None when there is none.

        Raises:
            TrackingError: Its files are gone.
        """
        found = self._aliased("champion")
        if found is None:
            return None
        version, digest, place = found
        folder = Path(place.removeprefix("file://")) if place.startswith(("/", "file:///")) else self._downloaded(version, digest)
        models = sorted((folder / "artifacts").glob("*")) if folder.is_dir() else []
        if len(models) != 1:
            raise TrackingError(f"the champion, version {version} of {MODEL_NAME}, has no files in {folder}. Run `guidespace nightly` again, or give the alias to another version.")
        return Champion(version=version, digest=digest, folder=models[0])

    # -- inside ------------------------------------------------------------------------------------------------------

    def _log_model(self, run_id: str, model_folder: Path, digest: str, example_title: str, lineage: str) -> str:
        """Makes MLflow's logged model; returns its id. Nothing here touches MLflow's global state."""
        facts = {DIGEST: digest, LINEAGE: lineage}
        model = self.client.create_logged_model(self.connection.experiment_id, name=MODEL_NAME, source_run_id=run_id, tags=facts, model_type="title-search")
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
        from mlflow.exceptions import MlflowException

        try:
            self.client.create_registered_model(MODEL_NAME, description="Titles like this one: answers the nearest titles of the guide, also for a title never seen.")
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
        # A server resolves models:/ID by itself; the SQLite store would ask MLflow's global address, which is not ours to set.
        location = self.client.get_logged_model(model_id).artifact_location
        source = f"models:/{model_id}" if self.connection.uri.startswith("http") else location
        tags = {**tags, "guidespace.logged_model": model_id}
        version = self.client.create_model_version(MODEL_NAME, source, run_id, tags=tags, model_id=model_id)
        self.client.set_logged_model_tags(model_id, {"mlflow.modelVersions": json.dumps([{"name": MODEL_NAME, "version": version.version}])})
        return version

    def _link(self, run_id: str, version: RegisteredVersion) -> None:
        """Shows the model among the outputs of the run."""
        from mlflow.entities import LoggedModelOutput

        model_id = version.tags.get("guidespace.logged_model")
        outputs = self.client.get_run(run_id).outputs
        if model_id and model_id not in {output.model_id for output in (outputs.model_outputs if outputs else [])}:
            self.client.log_outputs(run_id, [LoggedModelOutput(model_id, step=0)])

    def _aliased(self, alias: str) -> tuple[str, str, str] | None:
        """Version, digest and artifact folder of an alias: from the home's database if it can be read, else from MLflow."""
        if self.connection.is_local:
            if not self.connection.database.exists():
                return None
            self.connection.settle()
            try:
                return aliased_version(self.connection.database, MODEL_NAME, alias)
            except LookupError:
                pass
        from mlflow.exceptions import MlflowException

        try:
            version = self.client.get_model_version_by_alias(MODEL_NAME, alias)
        except MlflowException as error:
            if error.error_code in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):
                return None
            raise
        return str(version.version), version.tags.get(DIGEST, ""), self.client.get_model_version_download_uri(MODEL_NAME, version.version)

    def _downloaded(self, version: str, digest: str) -> Path:
        """Files of a version whose artifacts are elsewhere, fetched once a digest."""
        place = self.connection.home / "champions" / digest[:16]
        if not place.is_dir():
            from mlflow.artifacts import download_artifacts

            place.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=place.parent, ignore_cleanup_errors=True) as temporary:
                uri = self.connection.uri
                fetched = download_artifacts(artifact_uri=f"models:/{MODEL_NAME}/{version}", dst_path=temporary, tracking_uri=uri, registry_uri=uri)
                shutil.rmtree(place, ignore_errors=True)
                os.rename(fetched, place)
        return place


def _described(version: RegisteredVersion) -> ModelVersion:
    tags = version.tags
    return ModelVersion(
        version=str(version.version),
        digest=tags.get(DIGEST, ""),
        scores={key.removeprefix(SCORE): float(value) for key, value in tags.items() if key.startswith(SCORE)},
        lineage=tags.get(LINEAGE, ""),
        promoted_at=tags[PROMOTED_AT],
        reason=tags.get(REASON, ""),
    )
