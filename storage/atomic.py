"""Replaces files, folders and DuckDB databases atomically: a crash or a full disk leaves the old version.

New content is written to a temporary file, synced with fsync and renamed. Then the parent folder is synced,
so that a power failure does not undo the rename. If the process is killed, the temporary file remains:
``NAME.PID-THREAD.tmp``, or ``NAME-new.duckdb`` for a database. ``storage/tables`` does not use this module,
because it is a standalone library.
"""

import ctypes
import errno
import filecmp
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol, TypeVar

_RENAME_EXCHANGE = 2  # flag of the system call renameat2 that swaps two names
_AT_FDCWD = -100  # stands for the current directory in renameat2


class DatabaseConnection(Protocol):
    """The methods of a DuckDB connection that ``replaced_database`` uses."""

    def execute(self, query: str, /) -> object:
        """Executes an SQL statement."""

    def close(self) -> None:
        """Closes the database file."""


ConnectionT = TypeVar("ConnectionT", bound=DatabaseConnection)


@contextmanager
def replaced_file(target: Path, *, durable: bool = True, keep_equal: bool = False) -> Iterator[Path]:
    """Yields a temporary path. At the end of the block, the file at this path replaces ``target``.

    If the block raises, ``target`` is unchanged.

    Args:
        target: The file to replace; it may be missing.
        durable: Whether to call fsync (see ``replace_file``).
        keep_equal: Whether to leave ``target`` and its modification time unchanged if the new bytes are
            equal.
    """
    new_path = _temporary_path(target)
    try:
        yield new_path
        if not (keep_equal and target.is_file() and filecmp.cmp(new_path, target, shallow=False)):
            replace_file(new_path, target, durable=durable)
    finally:
        new_path.unlink(missing_ok=True)


def replace_file(new_path: Path, target: Path, *, durable: bool = True) -> None:
    """Renames the file ``new_path`` to ``target`` and keeps the permissions of an existing ``target``.

    ``durable=False`` skips fsync, for content that readers verify or that can be computed again.
    """
    with suppress(FileNotFoundError):
        shutil.copymode(target, new_path)
    if durable:
        sync(new_path)
    os.replace(new_path, target)
    if durable:
        sync(target.parent)


def link_if_missing(new_path: Path, target: Path) -> None:
    """Renames the file ``new_path`` to ``target``. If ``target`` exists, removes ``new_path`` instead.

    If several processes call this function at the same time, ``target`` is the file of the first process.
    """
    sync(new_path)
    try:
        os.link(new_path, target)
    except FileExistsError:
        pass
    except OSError:  # no hard links on this file system
        if not target.exists():
            os.replace(new_path, target)
    new_path.unlink(missing_ok=True)
    sync(target.parent)


def copy_if_missing(source: Path, target: Path) -> None:
    """Copies ``source`` to ``target`` atomically unless ``target`` exists."""
    new_path = _temporary_path(target)
    try:
        shutil.copyfile(source, new_path)
        link_if_missing(new_path, target)
    finally:
        new_path.unlink(missing_ok=True)


@contextmanager
def replaced_folder(target: Path, *, durable: bool = True) -> Iterator[Path]:
    """Yields an empty temporary folder. At the end of the block, this folder replaces ``target``.

    If the block raises, ``target`` is unchanged. ``durable=False`` skips fsync, for content that can be
    computed again.
    """
    new_path = _temporary_path(target)
    shutil.rmtree(new_path, ignore_errors=True)
    new_path.mkdir(parents=True)
    try:
        yield new_path
        replace_folder(new_path, target, durable=durable)
    finally:
        shutil.rmtree(new_path, ignore_errors=True)


def replace_folder(new_path: Path, target: Path, *, durable: bool = True) -> None:
    """Renames the folder ``new_path`` to ``target``. An existing ``target`` gets the name ``new_path``.

    Linux swaps the two names atomically. On other systems, ``target`` is missing for a moment between two
    renames. Both folders must be on the same file system. ``durable=False`` skips fsync, for content that can
    be computed again.
    """
    if durable:
        for folder, _, names in os.walk(new_path):
            for name in names:
                sync(Path(folder, name))
            sync(Path(folder))
    if not target.exists():
        os.rename(new_path, target)
    elif not _swap_names(new_path, target):
        old_path = new_path.with_name(f"{new_path.name}.before.tmp")
        os.rename(target, old_path)
        try:
            os.rename(new_path, target)
        except OSError:
            os.rename(old_path, target)
            raise
        os.rename(old_path, new_path)
    if durable:
        sync(target.parent)


def remove_folder(folder: Path) -> None:
    """Renames a folder to ``*.tmp`` and removes it, so that a killed process leaves no incomplete folder."""
    temporary = _temporary_path(folder)
    os.rename(folder, temporary)
    shutil.rmtree(temporary)


@contextmanager
def replaced_database(
    file: Path, connect: Callable[[Path], ConnectionT], *, copy: bool = False
) -> Iterator[ConnectionT]:
    """Yields a connection to a new DuckDB database. At the end of the block, this database replaces ``file``.

    If the block raises, ``file`` is unchanged. The caller must hold a lock that prevents other processes from
    opening ``file``.

    DuckDB 1.5 does not report a failed checkpoint in ``close``. Rows are then only in the write-ahead log,
    which DuckDB finds by the name of the database file. Renaming the database would lose the log, or apply it
    to the wrong database. This function therefore executes CHECKPOINT in both databases, and replaces
    ``file`` only if neither has a log.

    Args:
        file: The database to replace; it may be missing.
        connect: Function that opens a database file for writing.
        copy: Whether the new database starts as a copy of ``file`` (True) or empty (False).

    Raises:
        OSError: A database has a write-ahead log after CHECKPOINT. ``file`` is unchanged.
    """
    new_path = file.with_name(f"{file.stem}-new{file.suffix}")
    _remove_database(new_path)  # left by a killed process
    try:
        if file.exists():
            with _connect_and_checkpoint(file, connect):
                pass
            sync(file)
            if copy:
                shutil.copyfile(file, new_path)
        with _connect_and_checkpoint(new_path, connect) as connection:
            yield connection
        _check_no_log(file)
        replace_file(new_path, file)
    finally:
        _remove_database(new_path)


@contextmanager
def _connect_and_checkpoint(file: Path, connect: Callable[[Path], ConnectionT]) -> Iterator[ConnectionT]:
    """Yields a connection. At the end of the block, executes CHECKPOINT and closes the connection."""
    connection = connect(file)
    try:
        yield connection
        connection.execute("CHECKPOINT")
    finally:
        connection.close()
    _check_no_log(file)


def _check_no_log(file: Path) -> None:
    if (wal_file := _wal_file(file)).exists():
        problem = "DuckDB's CHECKPOINT did not remove the write-ahead log, so the database was not replaced"
        raise OSError(errno.EIO, problem, str(wal_file))


def _wal_file(file: Path) -> Path:
    return file.with_name(f"{file.name}.wal")


def _remove_database(file: Path) -> None:
    for database_file in (file, _wal_file(file)):
        database_file.unlink(missing_ok=True)
    shutil.rmtree(f"{file}.tmp", ignore_errors=True)  # temporary files of DuckDB


def sync(path: Path) -> None:
    """Flushes a file or folder to the disk with fsync."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # the file system cannot sync folders
            raise
    finally:
        os.close(descriptor)


def _temporary_path(target: Path) -> Path:
    """Returns ``target.PID-THREAD.tmp``, so that several processes and threads can replace one target."""
    return target.with_name(f"{target.name}.{os.getpid()}-{threading.get_ident()}.tmp")


def _swap_names(first_folder: Path, second_folder: Path) -> bool:
    """Swaps the names of two folders atomically. Returns False if the operating system cannot do this."""
    renameat2 = getattr(ctypes.CDLL(None), "renameat2", None)
    return renameat2 is not None and not renameat2(
        _AT_FDCWD, os.fsencode(first_folder), _AT_FDCWD, os.fsencode(second_folder), _RENAME_EXCHANGE
    )
