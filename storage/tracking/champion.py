"""Finds the files of the champion, the registered model that is served, and of other model versions.

The champion is the model version with the alias ``champion`` in MLflow. If the package mlflow is not
installed, a process can read this alias from mlflow.db in the home by SQL, but not from an MLflow server.
Therefore, if a process with the package moves or reads the alias on a server, it downloads the files of the
champion and records their folder in champion.json. Processes without the package read champion.json first. If
the alias is set in mlflow.db, champion.json is removed.
"""

from __future__ import annotations

import sqlite3
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from storage.atomic import replace_folder
from storage.digests import content_digest
from storage.json_file import read_json_if_exists, write_json
from storage.tracking.connection import MlflowConnection, TrackingError, sqlite_transaction
from storage.tracking.tags import VersionTag

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion as RegisteredVersion


class Champion(NamedTuple):
    """Registered model that is served."""

    version: str  # number of the model version in MLflow
    digest: str  # digest of the Model artifact
    folder: Path  # folder of the files


class LocatedVersion(NamedTuple):
    """Model version in MLflow, with the location of its files."""

    version: str  # number of the version
    digest: str  # digest of the Model artifact; '' if unknown
    content: str  # digest of the files; '' if unknown
    location: str  # path or URI of the files


def read_champion(database: Path, name: str) -> LocatedVersion | None:
    """Reads the version of a registered model that has the alias ``champion`` from MLflow's SQLite database.

    Args:
        database: MLflow's SQLite database.
        name: Name of the registered model.

    Raises:
        LookupError: The database has another schema.
    """
    query = f"""
        SELECT CAST(v.version AS TEXT), COALESCE(t.value, ''), COALESCE(c.value, ''),
        COALESCE(v.storage_location, v.source)
        FROM registered_model_aliases AS a
        JOIN model_versions AS v ON v.name = a.name AND v.version = a.version
        LEFT JOIN model_version_tags AS t
        ON t.name = v.name AND t.version = v.version AND t.key = '{VersionTag.DIGEST}'
        LEFT JOIN model_version_tags AS c
        ON c.name = v.name AND c.version = v.version AND c.key = '{VersionTag.CONTENT}'
        WHERE a.name = ? AND a.alias = 'champion'
    """
    try:
        with sqlite_transaction(database, "ro") as connection:
            row = connection.execute(query, [name]).fetchone()
    except sqlite3.Error as error:
        raise LookupError(f"{database}: {error}") from error
    return LocatedVersion(*row) if row else None


def locate_files(connection: MlflowConnection, version: RegisteredVersion) -> LocatedVersion:
    """Asks MLflow for the location of the files of a model version."""
    number = str(version.version)
    location = connection.client.get_model_version_download_uri(version.name, number)
    digest, content = (version.tags.get(tag, "") for tag in (VersionTag.DIGEST, VersionTag.CONTENT))
    return LocatedVersion(number, digest, content, location)


def open_version(connection: MlflowConnection, name: str, version: LocatedVersion) -> Champion:
    """Downloads the files of a version of the registered model ``name`` if necessary, and verifies them.

    Raises:
        TrackingError: The files are missing or have changed since the registration.
    """
    if version.location.startswith(("/", "file:///")):
        folder = Path(version.location.removeprefix("file://"))
    else:
        folder = _download(connection, name, version)
    models = list((folder / "artifacts").glob("*"))
    subject = f"the champion, version {version.version} of {name},"
    if len(models) != 1:
        raise TrackingError(
            f"{subject} has no files in {folder}. Run `guidespace nightly` again with "
            "--set publish.promote=always, or move the alias to another version."
        )
    if version.content and content_digest(models[0]) != version.content:
        raise TrackingError(
            f"{subject} was changed after its registration: the digest of {models[0]} differs from its tag "
            f"{VersionTag.CONTENT}. Restore the folder, or move the alias champion to another version."
        )
    return Champion(version=version.version, digest=version.digest, folder=models[0])


def _download(connection: MlflowConnection, name: str, version: LocatedVersion) -> Path:
    """Downloads the files of a version unless they were downloaded before; returns their folder."""
    source, uri = f"models:/{name}/{version.version}", connection.uri
    digest = version.digest or sha256(f"{uri} {source}".encode()).hexdigest()
    folder = connection.home / "champions" / digest[:16]
    if not folder.is_dir():
        from mlflow.artifacts import download_artifacts

        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, ignore_cleanup_errors=True) as temporary:
            download = download_artifacts(source, dst_path=temporary, tracking_uri=uri, registry_uri=uri)
            replace_folder(Path(download), folder)
    return folder


class ChampionRecord:
    """File champion.json of a home, in which processes without MLflow find the served model."""

    def __init__(self, home: Path) -> None:
        self.home, self.file = home, home / "champion.json"

    def read(self) -> LocatedVersion | None:
        """Returns the recorded version, whose location is the folder of its files; None without the file."""
        if (record := read_json_if_exists(self.file)) is None:
            return None
        return LocatedVersion(**{**record, "location": str(self.home / record["location"])})

    def write(self, version: LocatedVersion, folder: Path) -> None:
        """Records a model version and the folder of its files, as a relative path if it is in the home."""
        if self.read() != version._replace(location=str(folder)):
            location = folder.relative_to(self.home) if folder.is_relative_to(self.home) else folder
            write_json(self.file, version._replace(location=str(location))._asdict())

    def remove(self) -> None:
        """Removes champion.json, so that readers use the alias ``champion`` in mlflow.db."""
        self.file.unlink(missing_ok=True)
