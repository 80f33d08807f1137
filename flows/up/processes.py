"""Processes that ``guidespace up`` starts, each in a session of its own, and their end.

So a terminal's Ctrl-C reaches ``up`` alone, which ends them in order. A process id is used again in time:
with the time at which the process began it names one process, also for a later ``up`` that reads the record.
"""

import os
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

UP_HOME = "GUIDESPACE_UP_HOME"  # variable of all processes of an ``up``: its home
SECONDS_TO_END = 15.0  # after SIGTERM; then SIGKILL
SAME_START_SECONDS = 2.0  # start times are from a clock that may be set; no process id returns as fast
LAST_LINES = 12


@dataclass(frozen=True)
class Process:
    """A process: its part in the whole, its id, when it began (seconds since 1970), and of which home."""

    name: str
    pid: int
    started: float
    home: str = ""

    @classmethod
    def of(cls, name: str, pid: int, home: str = "") -> "Process":
        """The running process with that id; raises psutil.NoSuchProcess."""
        return cls(name, pid, psutil.Process(pid).create_time(), home)

    def find(self) -> psutil.Process | None:
        """The process, if it still runs; None for another one with its id."""
        try:
            found = psutil.Process(self.pid)
            is_same = abs(found.create_time() - self.started) < SAME_START_SECONDS
            return found if is_same and found.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None


def start(
    name: str, command: Sequence[str], log: Path, environment: Mapping[str, str], folder: Path
) -> tuple[Process, subprocess.Popen[bytes]]:
    """Starts a command in a session of its own; what it prints goes to ``log``, the last log to ``log.1``."""
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
    return Process.of(name, process.pid, environment.get(UP_HOME, "")), process


def end(processes: Sequence[Process], seconds: float = SECONDS_TO_END) -> list[str]:
    """Ends processes and all that they started, those begun last first: flow runs still reach the servers.

    Each gets SIGTERM, and after ``seconds`` SIGKILL. Returns the names of those that ran.
    """
    running = [(process.name, whole) for process in processes if (whole := _whole(process))]
    for _, whole in reversed(running):
        _send(whole, signal.SIGTERM)
        _, alive = psutil.wait_procs(whole, timeout=seconds)
        late = {each for process in alive for each in (process, *_below(process))}  # some began meanwhile
        _send(late, signal.SIGKILL)
        psutil.wait_procs(list(late), timeout=seconds)
    return [name for name, _ in running]


def why_ended(process: subprocess.Popen[bytes], log: Path) -> str:
    """How a process ended, and the last lines that it printed."""
    code = process.returncode
    how = f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    lines = log.read_text(errors="replace", encoding="utf-8").splitlines()[-LAST_LINES:]
    return "\n".join([f"{how}; the last lines of {log}:", *(f"  {line}" for line in lines)])


def _whole(process: Process) -> list[psutil.Process]:
    """A process and those that it started; if it is gone, those that are left of its session."""
    if found := process.find():
        return [found, *_below(found)]
    with suppress(psutil.NoSuchProcess):
        if psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE:
            return []  # another process has its id
    return [each for each in psutil.process_iter() if _is_left_of(process, each)]


def _is_left_of(leader: Process, process: psutil.Process) -> bool:
    """Whether a process is in the session of one that is gone, and was started for the same home.

    The session's number may be used again, also by ``guidespace up`` of another home.
    """
    with suppress(psutil.Error, OSError):
        same_session = os.getsid(process.pid) == leader.pid
        return same_session and bool(leader.home) and process.environ().get(UP_HOME) == leader.home
    return False


def _below(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _send(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        try:
            process.send_signal(number)  # not to another process with its id: psutil compares start times
        except psutil.NoSuchProcess:
            continue
