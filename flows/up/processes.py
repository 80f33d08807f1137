"""Starts, records and terminates the processes of ``guidespace up``.

Each process runs in its own session, so that Ctrl-C in a terminal reaches ``up`` only, which then terminates
the other processes in order. The operating system reuses process ids, so a process is identified by its id
and its start time. The file ``up.json`` in the home records the processes for a later ``up``; a running
``up`` keeps the file locked.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock, Timeout

UP_HOME = "GUIDESPACE_UP_HOME"  # environment variable with the home, in all processes of an ``up``
TERMINATE_SECONDS = 15.0  # time from SIGTERM to SIGKILL
START_TOLERANCE_SECONDS = 2.0  # start times that differ by less are equal, because the clock may be adjusted
MAX_LOG_LINES = 12  # number of lines of a log that a message quotes
RECORD_FILE = "up.json"


@dataclass(frozen=True)
class ProcessIdentity:
    """Identity of a process: name, id, start time (seconds since 1970) and the home of its ``up``."""

    name: str
    pid: int
    started: float
    home: str = ""

    @classmethod
    def from_pid(cls, name: str, pid: int, home: str = "") -> "ProcessIdentity":
        """Returns the identity of the running process ``pid``; raises NoSuchProcess if it has ended."""
        return cls(name, pid, psutil.Process(pid).create_time(), home)

    def find(self) -> psutil.Process | None:
        """Returns the process, or None if it has ended. A new process with the same id is not returned."""
        try:
            process = psutil.Process(self.pid)
            is_same = abs(process.create_time() - self.started) < START_TOLERANCE_SECONDS
            return process if is_same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None


def start_process(
    name: str, command: Sequence[str], log: Path, environment: Mapping[str, str], folder: Path
) -> tuple[ProcessIdentity, subprocess.Popen[bytes]]:
    """Starts a command in its own session, and returns the identity and the Popen object of its process.

    The output is written to ``log``; a previous log is renamed to ``log.1``.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists():
        os.replace(log, f"{log}.1")  # noqa: TID251  (rotation)
    with open(log, "wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return ProcessIdentity.from_pid(name, process.pid, environment.get(UP_HOME, "")), process


def terminate(processes: Sequence[ProcessIdentity], seconds: float = TERMINATE_SECONDS) -> list[str]:
    """Terminates processes and their descendants, last started first: flow runs before the servers.

    Each process gets SIGTERM, and SIGKILL after ``seconds``. Returns the names of the terminated processes.
    """
    running_trees = [(process.name, tree) for process in processes if (tree := _process_tree(process))]
    for _, tree in reversed(running_trees):
        _send_signal(tree, signal.SIGTERM)
        _, alive_processes = psutil.wait_procs(tree, timeout=seconds)
        remaining_processes = {
            process for parent in alive_processes for process in (parent, *_descendants(parent))
        }
        _send_signal(remaining_processes, signal.SIGKILL)
        psutil.wait_procs(list(remaining_processes), timeout=seconds)
    return [name for name, _ in running_trees]


def describe_exit(process: subprocess.Popen[bytes], log: Path) -> str:
    """Returns a text that says how a process ended, with the last lines of its log."""
    code = process.returncode
    ending = f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    lines = log.read_text(errors="replace", encoding="utf-8").splitlines()[-MAX_LOG_LINES:]
    return "\n".join([f"{ending}; the last lines of {log}:", *(f"  {line}" for line in lines)])


def _process_tree(process: ProcessIdentity) -> list[psutil.Process]:
    """Returns a process and its descendants; if the process has ended, the other processes of its session."""
    if leader := process.find():
        return [leader, *_descendants(leader)]
    with suppress(psutil.NoSuchProcess):
        if psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE:
            return []  # the id now belongs to another process
    return [candidate for candidate in psutil.process_iter() if _is_orphan_of(process, candidate)]


def _is_orphan_of(leader: ProcessIdentity, process: psutil.Process) -> bool:
    """Returns whether a process belongs to the session of a leader that has ended, and to the same home.

    Checks the home because session ids are reused, also by a ``guidespace up`` of another home.
    """
    with suppress(psutil.Error, OSError):
        is_in_session = os.getsid(process.pid) == leader.pid
        return is_in_session and bool(leader.home) and process.environ().get(UP_HOME) == leader.home
    return False


def _descendants(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _send_signal(processes: Iterable[psutil.Process], signal_number: signal.Signals) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):  # psutil compares start times before it sends
            process.send_signal(signal_number)


class AlreadyUp(Exception):
    """Error: another ``guidespace up`` is running for the home."""


@dataclass(frozen=True)
class RunningProcesses:
    """Record of a running ``up``: URLs of Prefect and MLflow, the process of ``up`` and its children."""

    prefect: str  # URL of Prefect's pages
    mlflow: str  # URL of MLflow's pages
    supervisor: ProcessIdentity  # the process of ``up``
    processes: list[ProcessIdentity] = field(default_factory=list)
    since: str = field(default_factory=lambda: time.strftime("%Y-%m-%d %H:%M:%S"))

    def summary(self) -> str:
        """Returns the URLs of Prefect and MLflow and the names of the running processes, as lines of text."""
        running = [f"{process.name} (process {process.pid})" for process in self.processes if process.find()]
        return f"  Prefect  {self.prefect}\n  MLflow   {self.mlflow}\n  running: {', '.join(running)}"


def read_record(home: Path) -> RunningProcesses | None:
    """Reads the record of the last ``up`` of a home. Returns None if the file is missing or damaged."""
    try:
        content: dict[str, Any] = json.loads((home / RECORD_FILE).read_text(encoding="utf-8"))
        return RunningProcesses(
            prefect=content["prefect"],
            mlflow=content["mlflow"],
            supervisor=ProcessIdentity(**content["own"]),
            processes=[ProcessIdentity(**process) for process in content["processes"]],
            since=content["since"],
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_record(home: Path, record: RunningProcesses) -> None:
    """Overwrites ``up.json`` in place, because a new file would not have the lock of the old one."""
    content = asdict(record)
    content["own"] = content.pop("supervisor")
    with open(home / RECORD_FILE, "r+", encoding="utf-8") as file:
        file.write(json.dumps(content, indent=1))
        file.truncate()
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def locked_record(home: Path) -> Iterator[RunningProcesses | None]:
    """Locks ``up.json`` of a home during the block, and yields the record of the previous ``up``.

    Raises:
        AlreadyUp: Another process holds the lock.
    """
    try:
        with FileLock(home / RECORD_FILE, timeout=0, mode=0o600, thread_local=False):
            yield read_record(home)
    except Timeout as error:
        raise AlreadyUp from error
