"""Finds the files of the champion, the registered model that is served. Does not require MLflow.

The champion is the model version with the alias ``champion`` in MLflow. If the package mlflow is not
installed, a process can read this alias from mlflow.db in the home by SQL, but not from an MLflow server.
Therefore, if a process with the package moves or reads the alias on a server, it downloads the files of the
champion and records their folder in champion.json. Processes without the package read champion.json first. If
the alias is set in mlflow.db, champion.json is removed.
"""

import json
from pathlib import Path
from typing import NamedTuple

from storage.digests import content_digest
from storage.json_file import write_json
from storage.tracking.connection import TrackingError
from storage.tracking.tags import VersionTag


class Champion(NamedTuple):
    """Registered model that is served."""

    version: str  # number of the model version in MLflow
    digest: str  # digest of the Model artifact
    folder: Path  # folder of the files


class AliasedVersion(NamedTuple):
    """Model version in MLflow to which an alias such as ``champion`` points."""

    version: str  # number of the version
    digest: str  # digest of the Model artifact; '' if unknown
    content: str  # digest of the files; '' if unknown
    location: str  # path or URI of the files


def verify_files(name: str, aliased: AliasedVersion, folder: Path) -> Champion:
    """Verifies the files of the champion and returns the champion.

    Args:
        name: Name of the registered model, for messages.
        aliased: The version with the alias champion.
        folder: Folder of the version in MLflow's format.

    Raises:
        TrackingError: The files are missing or have changed since the registration.
    """
    models = list((folder / "artifacts").glob("*"))
    subject = f"the champion, version {aliased.version} of {name},"
    if len(models) != 1:
        raise TrackingError(
            f"{subject} has no files in {folder}. Run `guidespace nightly` again with "
            "--set publish.promote=always, or move the alias to another version."
        )
    if aliased.content and content_digest(models[0]) != aliased.content:
        raise TrackingError(
            f"{subject} was changed after its registration: the digest of {models[0]} differs from its tag "
            f"{VersionTag.CONTENT}. Restore the folder, or move the alias champion to another version."
        )
    return Champion(version=aliased.version, digest=aliased.digest, folder=models[0])


class ChampionRecord:
    """File champion.json of a home, in which processes without MLflow find the served model."""

    def __init__(self, home: Path) -> None:
        self.home, self.file = home, home / "champion.json"

    def read(self) -> AliasedVersion | None:
        """Returns the recorded version, whose location is the folder of its files; None without the file."""
        try:
            record = AliasedVersion(**json.loads(self.file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        return record._replace(location=str(self.home / record.location))

    def write(self, aliased: AliasedVersion, folder: Path) -> None:
        """Records a model version and the folder of its files, as a relative path if it is in the home."""
        if self.read() != aliased._replace(location=str(folder)):
            location = folder.relative_to(self.home) if folder.is_relative_to(self.home) else folder
            write_json(self.file, aliased._replace(location=str(location))._asdict())

    def remove(self) -> None:
        """Removes champion.json, so that readers use the alias ``champion`` in mlflow.db."""
        self.file.unlink(missing_ok=True)
