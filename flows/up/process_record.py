"""``up.json`` in the home: URLs and processes of ``guidespace up``, which holds a lock on the file."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from flows.up.processes import Process

FILE = "up.json"


class AlreadyUp(Exception):
    """Another ``guidespace up`` is running for the home."""


@dataclass(frozen=True)
class Record:
    """URLs of the web pages, the process of ``up`` and the processes that it has started."""

    prefect: str
    mlflow: str
    supervisor: Process
    processes: list[Process] = field(default_factory=list)
    since: str = field(default_factory=lambda: time.strftime("%Y-%m-%d %H:%M:%S"))

    def summary(self) -> str:
        """Returns lines to print: both URLs and the running processes."""
        running = [f"{process.name} (process {process.pid})" for process in self.processes if process.find()]
        return f"  Prefect  {self.prefect}\n  MLflow   {self.mlflow}\n  running: {', '.join(running)}"


def read_record(home: Path) -> Record | None:
    """Reads the record of the last ``up`` of a home; None if there is none or it is damaged."""
    try:
        content: dict[str, Any] = json.loads((home / FILE).read_text(encoding="utf-8"))
        return Record(
            prefect=content["prefect"],
            mlflow=content["mlflow"],
            supervisor=Process(**content["own"]),
            processes=[Process(**process) for process in content["processes"]],
            since=content["since"],
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_record(home: Path, record: Record) -> None:
    """Overwrites the locked file in place, because a new file would not be locked."""
    content = asdict(record)
    content["own"] = content.pop("supervisor")
    with open(home / FILE, "r+", encoding="utf-8") as file:
        file.write(json.dumps(content, indent=1))
        file.truncate()
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def locked_record(home: Path) -> Iterator[Record | None]:
    """Locks the record of a home and yields the previous content.

    Raises:
        AlreadyUp: Another process holds the lock.
    """
    try:
        with FileLock(home / FILE, timeout=0, mode=0o600, thread_local=False):
            yield read_record(home)
    except Timeout as error:
        raise AlreadyUp from error
