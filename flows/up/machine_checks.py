"""Checks the machine for ``guidespace doctor``: processes of ``up``, ports, disk and SQLite databases."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Literal

import psutil

from flows.up.network import MLFLOW_PORT, PREFECT_PORT, describe_listener
from flows.up.processes import read_record

CRITICAL_BYTES = 1 << 30  # free space that one night needs
LOW_BYTES = 10 << 30  # free space that a month of nights of a national guide needs
SQLITE_FILES = ("mlflow.db", "prefect/prefect.db")

CheckResult = tuple[Literal["ok", "note", "bad"], str, str]  # state, subject, text


def examine_machine(home: Path) -> Iterator[CheckResult]:
    """Yields the results of the checks of disk, processes of ``up``, ports and SQLite databases."""
    yield _check_disk(home)
    record = read_record(home)
    running_processes = [process for process in record.processes if process.find()] if record else []
    is_up = record is not None and record.supervisor.find() is not None
    if record and is_up:
        urls = f"{record.prefect}, {record.mlflow}"
        yield "ok", "up", f"`guidespace up` has been running since {record.since}: {urls}"
    elif running_processes:
        leftover_names = ", ".join(f"{process.name} (process {process.pid})" for process in running_processes)
        problem = f"an earlier `guidespace up` was killed and left {leftover_names}"
        yield "bad", "up", f"{problem}; the next `guidespace up` ends them"
    if not is_up:
        yield _check_port("Prefect", PREFECT_PORT)
        yield _check_port("MLflow", MLFLOW_PORT)
    yield from (_check_sqlite(home / name) for name in SQLITE_FILES if (home / name).exists())


def _check_port(server: str, port: int) -> CheckResult:
    if (holder := describe_listener(port)) is None:
        return "ok", "port", f"{port} ({server}) is free"
    advice = f"`guidespace up` uses another port; --{server.lower()}-port chooses one"
    return "note", "port", f"{port} ({server}) is taken by {holder}; {advice}"


def _check_disk(home: Path) -> CheckResult:
    folder = next(folder for folder in (home, *home.parents) if folder.exists())
    free_bytes = shutil.disk_usage(folder).free
    text = f"{free_bytes / 2**30:,.1f} GiB free at {folder}"
    if free_bytes < CRITICAL_BYTES:
        return "bad", "disk", f"{text}; free some space before the next night"
    return (
        ("note", "disk", f"{text}; free some space soon") if free_bytes < LOW_BYTES else ("ok", "disk", text)
    )


def _check_sqlite(file: Path) -> CheckResult:
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=rw", uri=True, timeout=1.0)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.rollback()
        return "ok", "database", f"{file}: not locked"
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            return "bad", "database", f"{file}: {error}"
        holders = ", ".join(f"process {pid} ({_process_name(pid)})" for pid in lock_holders(file))
        advice = "end that process if the lock persists"
        return "note", "database", f"{file} is locked by {holders or 'another process'}; {advice}"


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
