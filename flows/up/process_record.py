"""``up.json`` in the home: addresses and processes of ``guidespace up``, which holds a lock on it."""

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
    """Another ``guidespace up`` holds the home."""


@dataclass(frozen=True)
class Record:
    """What ``up`` has written: addresses of the pages, its own process, and those that it started."""

    prefect: str
    mlflow: str
    own: Process
    processes: list[Process] = field(default_factory=list)
    since: str = field(default_factory=lambda: time.strftime("%Y-%m-%d %H:%M:%S"))

    @property
    def lines(self) -> list[str]:
        """For people: the two addresses, and each process."""
        running = [f"{each.name} (process {each.pid})" for each in self.processes if each.find()]
        return [f"  Prefect  {self.prefect}", f"  MLflow   {self.mlflow}", f"  running: {', '.join(running)}"]


def read_record(home: Path) -> Record | None:
    """What the last ``up`` of a home has written; None where there is nothing, or it has ended all."""
    try:
        content: dict[str, Any] = json.loads((home / FILE).read_text(encoding="utf-8"))
        return Record(
            prefect=content["prefect"],
            mlflow=content["mlflow"],
            own=Process(**content["own"]),
            processes=[Process(**each) for each in content["processes"]],
            since=content["since"],
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_record(home: Path, record: Record) -> None:
    """Writes into the locked file; another file in its place would not be locked."""
    content = json.dumps(asdict(record), indent=1)
    with open(home / FILE, "r+", encoding="utf-8") as file:
        file.write(content)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def standing(home: Path) -> Iterator[Record | None]:
    """Holds the home for one ``up``; gives what one that was killed has left. Raises AlreadyUp."""
    try:
        with FileLock(home / FILE, timeout=0, mode=0o600, thread_local=False):
            yield read_record(home)
    except Timeout as error:
        raise AlreadyUp from error
