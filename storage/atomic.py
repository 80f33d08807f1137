"""Atomic replacement of files, folders and DuckDB databases: a crash or a full disk leaves the old version.

New content is written to a temporary name, synced and renamed; then the parent folder is synced, so that a
power failure does not undo the rename. A killed process leaves ``NAME.PID.tmp``, or ``NAME-new.duckdb`` of a
database. ``storage/tables`` is a standalone library and writes its files itself (streaming.py).
"""

import ctypes
import errno
import filecmp
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol, TypeVar

_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2
_AT_FDCWD = -100


class DatabaseConnection(Protocol):
    """The methods of a DuckDB connection that ``replaced_database`` uses."""

    def execute(self, query: str, /) -> object:
        """Executes a statement."""

    def close(self) -> None:
        """Closes the file."""


C = TypeVar("C", bound=DatabaseConnection)


@contextmanager
def replaced_file(target: Path, *, durable: bool = True, keep_equal: bool = False) -> Iterator[Path]:
    """Yields a temporary path; the file replaces ``target`` if the block succeeds.

    With ``keep_equal``, a ``target`` with the same bytes remains, and with it its time of modification.
    """
    new = _temporary(target)
    try:
        yield new
        if not (keep_equal and target.is_file() and filecmp.cmp(new, target, shallow=False)):
            replace_file(new, target, durable=durable)
    finally:
        new.unlink(missing_ok=True)


def replace_file(new: Path, target: Path, *, durable: bool = True) -> None:
    """Renames a file on the same file system and keeps the permissions of an existing ``target``.

    ``durable=False`` skips the sync, for content that readers verify or that can be computed again.
    """
    with suppress(FileNotFoundError):
        shutil.copymode(target, new)
    if durable:
        sync(new)
    os.replace(new, target)
    if durable:
        sync(target.parent)


def link_if_missing(new: Path, target: Path) -> None:
    """Syncs and renames a file unless ``target`` exists or another process creates it; removes ``new``."""
    sync(new)
    try:
        os.link(new, target)
    except FileExistsError:
        pass
    except OSError:  # no hard links on this file system
        if not target.exists():
            os.replace(new, target)
    new.unlink(missing_ok=True)
    sync(target.parent)


def copy_if_missing(source: Path, target: Path) -> None:
    """Copies a file atomically unless the target exists."""
    new = _temporary(target)
    try:
        shutil.copyfile(source, new)
        link_if_missing(new, target)
    finally:
        new.unlink(missing_ok=True)


@contextmanager
def replaced_folder(target: Path, *, durable: bool = True) -> Iterator[Path]:
    """Yields an empty temporary folder, which replaces ``target`` if the block succeeds."""
    new = _temporary(target)
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    try:
        yield new
        replace_folder(new, target, durable=durable)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def replace_folder(new: Path, target: Path, *, durable: bool = True) -> None:
    """Renames a folder on the same file system; a previous ``target`` is renamed to ``new``.

    See ``replace_file`` for ``durable``. On Linux the names are swapped atomically. On other systems
    ``target`` does not exist for a moment between two renames.
    """
    if durable:
        for folder, _, names in os.walk(new):
            for name in names:
                sync(Path(folder, name))
            sync(Path(folder))
    if not target.exists():
        os.rename(new, target)
    elif not _exchange(new, target):
        previous = new.with_name(f"{new.name}.before.tmp")
        os.rename(target, previous)
        try:
            os.rename(new, target)
        except OSError:
            os.rename(previous, target)
            raise
        os.rename(previous, new)
    if durable:
        sync(target.parent)


def remove_folder(folder: Path) -> None:
    """Renames a folder to ``*.tmp`` and removes it, so that a killed process leaves no incomplete folder."""
    temporary = _temporary(folder)
    os.rename(folder, temporary)
    shutil.rmtree(temporary)


@contextmanager
def replaced_database(file: Path, connect: Callable[[Path], C], *, copy: bool = False) -> Iterator[C]:
    """Yields a connection to a new database, which replaces ``file`` if the block succeeds.

    The caller must hold a lock that prevents other processes from opening ``file``.

    DuckDB 1.5 does not report a failed checkpoint in ``close``; rows are then in the write-ahead log only.
    DuckDB locates the log by the file name, so the rename would lose it or replay it into the new file.
    Therefore both files are checkpointed explicitly, and ``file`` is replaced only if neither has a log.

    Args:
        file: The database; it may be missing.
        connect: Opens a database file for writing.
        copy: Whether the new database starts as a copy of ``file`` or empty.

    Raises:
        OSError: A checkpoint has left a write-ahead log. ``connect`` and ``CHECKPOINT`` may raise others.
    """
    new = file.with_name(f"{file.stem}-new{file.suffix}")
    _remove_database(new)  # of a killed process
    try:
        if file.exists():
            with _checkpointed(file, connect):
                pass
            sync(file)
            if copy:
                shutil.copyfile(file, new)
        with _checkpointed(new, connect) as connection:
            yield connection
        _check_no_log(file)
        replace_file(new, file)
    finally:
        _remove_database(new)


@contextmanager
def _checkpointed(file: Path, connect: Callable[[Path], C]) -> Iterator[C]:
    connection = connect(file)
    try:
        yield connection
        connection.execute("CHECKPOINT")
    finally:
        connection.close()
    _check_no_log(file)


def _check_no_log(file: Path) -> None:
    if (log := _wal(file)).exists():
        raise OSError(errno.EIO, "DuckDB's checkpoint left a write-ahead log; nothing was replaced", str(log))


def _wal(file: Path) -> Path:
    return file.with_name(f"{file.name}.wal")


def _remove_database(file: Path) -> None:
    for part in (file, _wal(file)):
        part.unlink(missing_ok=True)
    shutil.rmtree(f"{file}.tmp", ignore_errors=True)  # files that DuckDB has spilled


def sync(path: Path) -> None:
    """Calls fsync on a file or folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # the file system cannot sync folders
            raise
    finally:
        os.close(descriptor)


def _temporary(target: Path) -> Path:
    """Temporary name with the process id, because two processes may replace one target at the same time."""
    return target.with_name(f"{target.name}.{os.getpid()}.tmp")


def _exchange(first: Path, second: Path) -> bool:
    """Swaps two names atomically; returns False if the system or the file system does not support it."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    return rename is not None and not rename(
        _AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _EXCHANGE
    )
