"""Writes a home to a tar archive while it is in use: ``deployments/backup.sh HOME ARCHIVE.tar``.

The backup holds the lock of the home (``writer.lock``). It waits up to two hours for a running flow
(``WAIT_SECONDS``), and flows wait for the backup. Servers may continue to run. SQLite and
DuckDB copy their databases, because a plain copy of a file could contain half a transaction. The backup fails
if any other file changes while it is read.

The archive does not contain:

- published artifacts, which the next nightly run recreates
- downloaded copies of models
- logs, locks, temporary files and the process record of ``guidespace up``
- homes within the home (smoke, tune, ablate)
"""

import os
import sqlite3
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path

from storage.atomic import replaced_file
from storage.catalogue.connection import copy_database
from storage.catalogue.likes import LIKES_FILE, locked_likes
from storage.home.marker import is_home
from storage.home.workspace import HomeError, HomeLocked, Workspace

# Names of files and folders of the home that are not archived.
EXCLUDED_NAMES = {"artifacts", "models", "logs", "writer.lock", "likes.lock", "up.json"}
TEMPORARY_SUFFIXES = ".tmp", "-new.duckdb", ".wal", "-wal", "-shm", "-journal"
SQLITE_SUFFIX, DUCKDB_SUFFIX = ".db", ".duckdb"


class BackupError(Exception):
    """Error: the backup failed and wrote no archive. The message contains the reason."""


def back_up(home: Path, archive: Path, wait_seconds: float) -> None:
    """Writes the files of a home to a tar archive, and replaces an existing archive.

    Args:
        home: Folder of the home.
        archive: Tar file to write.
        wait_seconds: How long to wait for another process that writes to the home.

    Raises:
        BackupError: A file changed while it was read, or a database cannot be copied.
        HomeError: The home does not exist, or another process still holds its lock after ``wait_seconds``.
    """
    workspace, archive = Workspace(home, create=False), archive.resolve()
    with (
        workspace.writing("backup", wait_seconds=wait_seconds, report_wait=_warn),
        tempfile.TemporaryDirectory(dir=archive.parent, prefix=f"{archive.name}.") as copies_folder,
        replaced_file(archive) as new_archive,
        tarfile.open(new_archive, "w") as tar,
    ):
        entries = (entry for entry in workspace.home.iterdir() if entry.name not in EXCLUDED_NAMES)
        for file in sorted(file for entry in entries for file in _list_files(entry)):
            name = file.relative_to(workspace.home).as_posix()
            if file.suffix in (SQLITE_SUFFIX, DUCKDB_SUFFIX) and not file.is_symlink():
                copy = Path(copies_folder, "copy").with_suffix(file.suffix)
                _copy_database(file, copy)
                copy.chmod(file.stat().st_mode)
                tar.add(copy, name)
                copy.unlink()
            else:
                _add_file(tar, file, name)


def _list_files(entry: Path) -> Iterator[Path]:
    """Yields a file, or the files and links in a folder, except temporary files and nested homes."""
    if entry.name.endswith(TEMPORARY_SUFFIXES) or is_home(entry):
        return
    if entry.is_dir() and not entry.is_symlink():
        for child in entry.iterdir():
            yield from _list_files(child)
    else:
        yield entry


def _copy_database(file: Path, copy: Path) -> None:
    try:
        if file.suffix == DUCKDB_SUFFIX:
            with locked_likes(file.parent) if file.name == LIKES_FILE else nullcontext():
                copy_database(file, copy)
        else:
            uri = f"{file.as_uri()}?mode=rw"
            with (
                closing(sqlite3.connect(uri, uri=True, timeout=60)) as source,
                closing(sqlite3.connect(copy)) as target,
            ):
                source.backup(target)
    except (OSError, sqlite3.Error) as error:
        raise BackupError(f"{file} cannot be copied: {error}") from error


def _add_file(tar: tarfile.TarFile, file: Path, name: str) -> None:
    try:
        info = tar.gettarinfo(file, name)
        if not info.isreg():
            tar.addfile(info)
            return
        with open(file, "rb") as handle:
            stat_before = os.fstat(handle.fileno())
            info.size = stat_before.st_size
            tar.addfile(info, handle)
            stat_after = os.fstat(handle.fileno())
    except FileNotFoundError:  # removed meanwhile, for example by `guidespace forget`
        return
    except OSError as error:
        raise BackupError(f"{file} cannot be copied: {error}") from error
    if (stat_before.st_size, stat_before.st_mtime_ns) != (stat_after.st_size, stat_after.st_mtime_ns):
        raise BackupError(f"{file} changed while it was read. Run the backup again.")


def _warn(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    """Writes HOME to ARCHIVE.tar. Returns 0, 1 if the backup failed, or 2 if the arguments are wrong."""
    if len(arguments) != 2:
        _warn("usage: deployments/backup.sh HOME ARCHIVE.tar")
        return 2
    os.umask(0o077)  # the archive contains viewers' likes and Prefect's secret blocks
    home, archive = map(Path, arguments)
    try:
        back_up(home, archive, float(os.environ.get("WAIT_SECONDS", 7200)))
    except (BackupError, HomeError) as error:
        _warn(str(error))
        return 1 if isinstance(error, BackupError | HomeLocked) else 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
