"""Replacing files, folders and DuckDB files. After a crash or on a full disk the old or the new one is there.

New content is written beside its place, synced and renamed; then the folder is synced, so that a power
failure does not undo the rename. A killed process leaves ``NAME.PID.tmp``, of a database ``NAME-new.duckdb``.
``storage/tables`` writes its files itself (streaming.py): it is a library of its own.
"""

import ctypes
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol, TypeVar

_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2
_HERE = -100  # AT_FDCWD


class Connection(Protocol):
    """What ``replaced_database`` needs of a DuckDB connection."""

    def execute(self, query: str, /) -> object:
        """Runs a statement."""

    def close(self) -> None:
        """Closes the file."""


C = TypeVar("C", bound=Connection)


@contextmanager
def replaced_file(target: Path, *, durable: bool = True) -> Iterator[Path]:
    """Gives a path to write; that file takes the place of ``target`` when the block ends without an error."""
    new = _temporary(target)
    try:
        yield new
        replace_file(new, target, durable=durable)
    finally:
        new.unlink(missing_ok=True)


def replace_file(new: Path, target: Path, *, durable: bool = True) -> None:
    """Renames a file on the same file system; an existing ``target`` hands on its permissions.

    ``durable=False`` leaves out the sync, for content that its reader verifies or that can be made again.
    """
    with suppress(FileNotFoundError):
        shutil.copymode(target, new)
    if durable:
        sync(new)
    os.replace(new, target)
    if durable:
        sync(target.parent)


def create_file(new: Path, target: Path) -> None:
    """Gives a synced file its name unless another process was faster, whose file stays; removes ``new``."""
    sync(new)
    try:
        os.link(new, target)
    except FileExistsError:
        pass
    except OSError:  # a file system without hard links
        if not target.exists():
            os.replace(new, target)
    new.unlink(missing_ok=True)
    sync(target.parent)


def copy_unless_there(source: Path, target: Path) -> None:
    """Copies a file whole or not at all; where another process was faster, its file stays."""
    new = _temporary(target)
    try:
        shutil.copyfile(source, new)
        create_file(new, target)
    finally:
        new.unlink(missing_ok=True)


@contextmanager
def replaced_folder(target: Path, *, durable: bool = True) -> Iterator[Path]:
    """Gives an empty folder, which takes the place of ``target`` when the block ends without an error."""
    new = _temporary(target)
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    try:
        yield new
        replace_folder(new, target, durable=durable)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def replace_folder(new: Path, target: Path, *, durable: bool = True) -> None:
    """Renames a folder on the same file system; a previous ``target`` takes the name ``new``.

    ``durable`` is that of ``replace_file``. Linux exchanges the names in one step. Elsewhere two renames
    leave an instant without a ``target``.
    """
    if durable:
        for folder, _, names in os.walk(new):
            for name in names:
                sync(Path(folder, name))
            sync(Path(folder))
    if not target.exists():
        os.rename(new, target)
    elif not _exchange(new, target):
        before = new.with_name(f"{new.name}.before.tmp")
        os.rename(target, before)
        try:
            os.rename(new, target)
        except OSError:
            os.rename(before, target)
            raise
        os.rename(before, new)
    if durable:
        sync(target.parent)


def remove_folder(folder: Path) -> None:
    """Renames a folder to ``*.tmp`` before it is removed: of a killed process no incomplete folder stays."""
    doomed = _temporary(folder)
    os.rename(folder, doomed)
    shutil.rmtree(doomed)


@contextmanager
def replaced_database(file: Path, connect: Callable[[Path], C], *, copy: bool = False) -> Iterator[C]:
    """Gives a connection to a new database, which takes the place of ``file`` when the block ends without an
    error. The caller holds a lock that keeps other processes from opening ``file``.

    ``close`` of DuckDB 1.5 hides a failed checkpoint: rows are then in the write-ahead log alone. As DuckDB
    finds the log by the file's name, it would be lost or replayed into the new file. So both files are
    checkpointed explicitly, and ``file`` is replaced only if neither has a log.

    Args:
        file: The database; it may be missing.
        connect: Opens a database file for writing.
        copy: The new database starts as a copy of ``file``, else empty.

    Raises:
        OSError: A checkpoint left a write-ahead log; as ``connect`` and ``CHECKPOINT`` do otherwise.
    """
    new = file.with_name(f"{file.stem}-new{file.suffix}")
    _remove_database(new)  # left by a killed process
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
    if (log := _log(file)).exists():
        raise OSError(errno.EIO, "DuckDB's checkpoint left a write-ahead log; nothing was replaced", str(log))


def _log(file: Path) -> Path:
    return file.with_name(f"{file.name}.wal")


def _remove_database(file: Path) -> None:
    for part in (file, _log(file)):
        part.unlink(missing_ok=True)
    shutil.rmtree(f"{file}.tmp", ignore_errors=True)  # what DuckDB spilled


def sync(path: Path) -> None:
    """Writes a file's content, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that cannot sync folders
            raise
    finally:
        os.close(descriptor)


def _temporary(target: Path) -> Path:
    """Named by the process, since two may replace one target at once."""
    return target.with_name(f"{target.name}.{os.getpid()}.tmp")


def _exchange(one: Path, other: Path) -> bool:
    """Exchanges two names in one step; False where the system or the file system cannot."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    return rename is not None and not rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE)
