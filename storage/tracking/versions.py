"""Versions of a registered model: what their tags say, and what we make of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion as RegisteredVersion
    from mlflow.entities.model_registry import RegisteredModel
    from mlflow.tracking import MlflowClient

DIGEST = "guidespace.model"
LINEAGE = "guidespace.lineage"
PROMOTED_AT = "guidespace.promoted_at"
REASON = "guidespace.reason"
QUALITY = "guidespace.score.quality"
HOME = "guidespace.home"
LOGGED_MODEL = "guidespace.logged_model"  # MLflow's SQL store takes a version's model_id and does not keep it


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
        quality: What the gate judged it by, as at its promotion; None where nothing was held out.
        lineage: Versions of one lineage were scored on comparable held-out sets.
        promoted_at: ISO 8601, UTC; the last time, when it was more than once.
    """

    version: str
    digest: str
    quality: float | None
    lineage: str
    promoted_at: str
    reason: str


def described(version: RegisteredVersion) -> ModelVersion:
    """What MLflow says of a version, in our words."""
    tags = version.tags
    return ModelVersion(
        version=str(version.version),
        digest=tags.get(DIGEST, ""),
        quality=float(tags[QUALITY]) if QUALITY in tags else None,
        lineage=tags.get(LINEAGE, ""),
        promoted_at=tags[PROMOTED_AT],
        reason=tags.get(REASON, ""),
    )


def versions_of_home(home: Path, versions: Iterable[RegisteredVersion]) -> list[RegisteredVersion]:
    """The promoted versions, oldest promotion first, whose model files this home published: all that tells whose a version is
    under the name that every home on a server once shared.
    """
    files = (home / "artifacts" / "model").glob("*/artifact.json")
    digests = {json.loads(file.read_text()).get("digest") for file in files if file.parent.suffix != ".tmp"}
    own = [
        version for version in versions if version.tags.get(DIGEST) in digests and PROMOTED_AT in version.tags
    ]
    return sorted(own, key=lambda version: (version.tags[PROMOTED_AT], int(version.version)))


def find_model(client: MlflowClient, name: str) -> RegisteredModel | None:
    """The registered model of that name, or None."""
    from mlflow.exceptions import MlflowException

    try:
        return client.get_registered_model(name)
    except MlflowException as error:
        if error.error_code == "RESOURCE_DOES_NOT_EXIST":
            return None
        raise


def all_versions(client: MlflowClient, name: str) -> list[RegisteredVersion]:
    """All versions of a registered model."""
    found: list[RegisteredVersion] = []
    token: str | None = None
    while True:
        page = client.search_model_versions(f"name = '{name}'", max_results=200, page_token=token)
        found += page
        token = page.token
        if not token:
            return found
