"""What ``guidespace doctor`` tells of the machine: processes of ``up``, ports, disk, SQLite databases."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Literal

import psutil

from flows.up.network import MLFLOW_PORT, PREFECT_PORT, listener
from flows.up.record import read_record

LEAST_FREE, LITTLE_FREE = 1 << 30, 10 << 30  # bytes: a night of a national guide, and a month of them
SQLITE = ("mlflow.db", "prefect/prefect.db")

Found = tuple[Literal["ok", "note", "bad"], str, str]


def examine_machine(home: Path) -> Iterator[Found]:
    """Findings: state, what about, and what with advice."""
    yield _disk(home)
    record = read_record(home)
    running = [each for each in record.processes if each.find()] if record else []
    if record and record.own.find():
        yield "ok", "up", f"`guidespace up` runs since {record.since}: {record.prefect}, {record.mlflow}"
    elif running:
        left = ", ".join(f"{each.name} (process {each.pid})" for each in running)
        yield "bad", "up", f"an earlier `guidespace up` was killed and left {left}; the next one ends them"
    for server, port in {"Prefect": PREFECT_PORT, "MLflow": MLFLOW_PORT}.items():
        if record is None or not record.own.find():
            taken = listener(port)
            use = f"`guidespace up` takes another one, or --{server.lower()}-port names it"
            yield ("note", "port", f"{port} ({server}) is taken by {taken}; {use}") if taken else (
                "ok", "port", f"{port} ({server}) is free"
            )  # fmt: skip
    yield from (_sqlite(home / name) for name in SQLITE if (home / name).exists())


def _disk(home: Path) -> Found:
    place = next(folder for folder in (home, *home.parents) if folder.exists())
    free = shutil.disk_usage(place).free
    state = "bad" if free < LEAST_FREE else "note" if free < LITTLE_FREE else "ok"
    advice = {"bad": "; free some before the next night", "note": "; watch it", "ok": ""}[state]
    return state, "disk", f"{free / 2**30:,.1f} GiB free at {place}{advice}"


def _sqlite(file: Path) -> Found:
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=rw", uri=True, timeout=1.0)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.rollback()
        return "ok", "database", f"{file}: nobody has it locked"
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            return "bad", "database", f"{file}: {error}"
        holders = (
            ", ".join(f"process {pid} ({_name(pid)})" for pid in lock_holders(file)) or "another process"
        )
        return "note", "database", f"{file} is locked by {holders}; end it if it stays so"


def lock_holders(file: Path) -> list[int]:
    """Processes with a lock on a file for writing, as Linux lists them; elsewhere none."""
    try:
        lines, about = Path("/proc/locks").read_text(encoding="utf-8").splitlines(), file.stat()
    except OSError:
        return []
    fields = [line.split() for line in lines if "->" not in line]
    return sorted(
        {int(each[4]) for each in fields if each[3] == "WRITE" and each[5].endswith(f":{about.st_ino}")}
    )


def _name(pid: int) -> str:
    try:
        return psutil.Process(pid).name()
    except psutil.NoSuchProcess:
        return "ended"
