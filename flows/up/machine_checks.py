"""Checks the machine for ``guidespace doctor``: processes of ``up``, ports, disk and SQLite databases."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from flows.up.network import MLFLOW_PORT, PREFECT_PORT, describe_listener
from flows.up.processes import read_record

CRITICAL_BYTES = 1 << 30  # free space that one night needs
LOW_BYTES = 10 << 30  # free space that a month of nights of a national guide needs
SQLITE_FILES = ("mlflow.db", "prefect/prefect.db")


@dataclass(frozen=True)
class Finding:
    """Result of one check of ``guidespace doctor``."""

    state: Literal["ok", "note", "bad"]
    about: str  # subject of the check, such as "Python" or "home"
    text: str  # the result, with a remedy if needed


def examine_machine(home: Path) -> Iterator[Finding]:
    """Yields the findings about the disk, the processes of ``up``, the ports and the SQLite databases."""
    yield _check_disk(home)
    record = read_record(home)
    running_processes = [process for process in record.processes if process.find()] if record else []
    is_up = record is not None and record.supervisor.find() is not None
    if record and is_up:
        urls = f"{record.prefect}, {record.mlflow}"
        yield Finding("ok", "up", f"`guidespace up` has been running since {record.since}: {urls}")
    elif running_processes:
        leftover_names = ", ".join(f"{process.name} (process {process.pid})" for process in running_processes)
        problem = f"an earlier `guidespace up` was killed and left {leftover_names}"
        yield Finding("bad", "up", f"{problem}; the next `guidespace up` ends them")
    if not is_up:
        yield _check_port("Prefect", PREFECT_PORT)
        yield _check_port("MLflow", MLFLOW_PORT)
    yield from (_check_sqlite(home / name) for name in SQLITE_FILES if (home / name).exists())


def _check_port(server: str, port: int) -> Finding:
    if (holder := describe_listener(port)) is None:
        return Finding("ok", "port", f"{port} ({server}) is free")
    advice = f"`guidespace up` uses another port; --{server.lower()}-port chooses one"
    return Finding("note", "port", f"{port} ({server}) is taken by {holder}; {advice}")


def _check_disk(home: Path) -> Finding:
    folder = next(folder for folder in (home, *home.parents) if folder.exists())
    free_bytes = shutil.disk_usage(folder).free
    text = f"{free_bytes / 2**30:,.1f} GiB free at {folder}"
    if free_bytes < CRITICAL_BYTES:
        return Finding("bad", "disk", f"{text}; free some space before the next night")
    if free_bytes < LOW_BYTES:
        return Finding("note", "disk", f"{text}; free some space soon")
    return Finding("ok", "disk", text)


def _check_sqlite(file: Path) -> Finding:
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=rw", uri=True, timeout=1.0)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.rollback()
        return Finding("ok", "database", f"{file}: not locked")
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            return Finding("bad", "database", f"{file}: {error}")
        holders = ", ".join(f"process {pid} ({_process_name(pid)})" for pid in lock_holders(file))
        advice = "end that process if the lock persists"
        return Finding("note", "database", f"{file} is locked by {holders or 'another process'}; {advice}")


def lock_holders(file: Path) -> list[int]:
    """Returns the ids of the processes with a write lock on a file (from /proc/locks; [] if not on Linux)."""
    try:
        lines, inode = Path("/proc/locks").read_text(encoding="utf-8").splitlines(), file.stat().st_ino
    except OSError:
        return []
    locks = [line.split() for line in lines if "->" not in line]
    return sorted({int(lock[4]) for lock in locks if lock[3] == "WRITE" and lock[5].endswith(f":{inode}")})


def _process_name(pid: int) -> str:
    try:
        return psutil.Process(pid).name()
    except psutil.NoSuchProcess:
        return "ended"
