"""The processes of one ``guidespace up`` while it runs."""

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from flows.cli.exits import Signals
from flows.up.processes import end, start, why_ended
from flows.up.record import Record, write_record
from storage.stages import ROOT

SECONDS_TO_START = 180.0  # a new home's databases take some ten
LOOK_SECONDS = 0.3


class Ended(Exception):
    """A process of ours has ended by itself; the message says which and why."""


class Standing:
    """What was started, its record, and whether a signal has come."""

    def __init__(self, home: Path, record: Record, environment: Mapping[str, str], stop: Signals) -> None:
        self.home, self.record, self.environment, self._stop = home, record, environment, stop
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._passing: set[str] = set()

    @property
    def is_stopped(self) -> bool:
        """Whether a signal has come."""
        return self._stop.received

    def start(self, name: str, *command: str, folder: Path = ROOT, passing: bool = False) -> None:
        """Starts ``python -m`` command in a folder and records it; does nothing after a signal.

        Args:
            passing: It ends by itself when its work is done.
        """
        if passing:
            self._passing.add(name)
        if not self.is_stopped:
            whole = [sys.executable, "-m", *command]
            process, self._running[name] = start(name, whole, self._log(name), self.environment, folder)
            self.record.processes.append(process)
            write_record(self.home, self.record)

    def wait(self, is_done: Callable[[], bool]) -> None:
        """Returns when something is done, or a signal has come.

        Raises:
            Ended: A process has ended by itself, or it takes too long.
        """
        deadline = time.monotonic() + SECONDS_TO_START
        while not (self.is_stopped or is_done()):
            self.look()
            if time.monotonic() > deadline:
                raise Ended(f"not ready after {SECONDS_TO_START:.0f} s; the logs are in {self.home / 'logs'}")

    def has_ended(self, name: str) -> bool:
        """Whether a process that shall end has ended well; from then on nobody looks after it."""
        if self._running[name].poll() != 0:
            return False
        del self._running[name]
        self.record.processes[:] = [each for each in self.record.processes if each.name != name]
        write_record(self.home, self.record)
        return True

    def look(self) -> None:
        """Waits a moment; raises Ended if a process has ended by itself."""
        time.sleep(LOOK_SECONDS)
        for name, process in self._running.items():
            if process.poll() is not None and (process.returncode or name not in self._passing):
                raise Ended(f"{name} {why_ended(process, self._log(name))}")

    def end(self) -> None:
        """Ends all."""
        end(self.record.processes)
        for process in self._running.values():
            process.wait()
        self.record.processes.clear()
        write_record(self.home, self.record)

    def _log(self, name: str) -> Path:
        return self.home / "logs" / f"{name.lower()}.log"
