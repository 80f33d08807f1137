"""The champion's files, and ``champion.json``, by which readers without MLflow find it.

The alias ``champion`` in MLflow decides. Readers without MLflow read it from the home's mlflow.db by SQL.
They cannot ask a server. Therefore every process that moves or reads the alias on a server downloads the
files of the champion and records them in champion.json, and a promotion in mlflow.db removes the record.
Only processes without MLflow read the record, and they read it first.
"""

import json
from pathlib import Path
from typing import NamedTuple

from storage.digests import content_digest
from storage.json_file import write_json
from storage.tracking.connection import TrackingError

CONTENT = "guidespace.content"  # tag with the digest of the registered files; older versions do not have it


class Champion(NamedTuple):
    """The serving model: its version, the digest of its model folder, and its files on this machine."""

    version: str
    digest: str
    folder: Path


class AliasedVersion(NamedTuple):
    """A version with an alias: digests of its model and of its files ('' if unknown), and its location."""

    version: str
    digest: str
    content: str
    location: str


def verify_files(name: str, aliased: AliasedVersion, folder: Path) -> Champion:
    """Returns the champion in a folder of MLflow's format.

    Raises:
        TrackingError: Its files are missing, or have changed since registration.
    """
    models = list((folder / "artifacts").glob("*"))
    about = f"the champion, version {aliased.version} of {name},"
    if len(models) != 1:
        raise TrackingError(
            f"{about} has no files in {folder}. Run `guidespace nightly` again with "
            "--set publish.promote=always, or move the alias to another version."
        )
    if aliased.content and content_digest(models[0]) != aliased.content:
        raise TrackingError(
            f"{about} was changed after its registration: the digest of {models[0]} differs from its tag "
            f"{CONTENT}. Restore the folder, or move the alias champion to another version."
        )
    return Champion(version=aliased.version, digest=aliased.digest, folder=models[0])


class ChampionRecord:
    """The file champion.json of a home."""

    def __init__(self, home: Path) -> None:
        self.home, self.file = home, home / "champion.json"

    def read(self) -> AliasedVersion | None:
        """Returns the recorded version, with the folder of its files as location; None without a file."""
        try:
            record = AliasedVersion(**json.loads(self.file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        return record._replace(location=str(self.home / record.location))

    def write(self, aliased: AliasedVersion, folder: Path) -> None:
        """Records a version unless it is recorded; the folder is stored relative to the home that has it."""
        if self.read() != aliased._replace(location=str(folder)):
            location = folder.relative_to(self.home) if folder.is_relative_to(self.home) else folder
            write_json(self.file, aliased._replace(location=str(location))._asdict())

    def remove(self) -> None:
        """Removes the record, because mlflow.db has the champion."""
        self.file.unlink(missing_ok=True)
