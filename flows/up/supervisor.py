"""Starts, monitors and stops the processes of one ``guidespace up``."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType

from flows.up.processes import RunningProcesses, describe_exit, start_process, terminate, write_record
from storage.stages import ROOT

START_TIMEOUT_SECONDS = 180.0  # creating the databases of a new home takes about 10 s
POLL_SECONDS = 0.3  # pause between two checks of the processes


class ProcessEnded(Exception):
    """Error: a process has ended unexpectedly, or the processes are not ready in time."""


class StopSignals:
    """Handler of Ctrl-C, SIGTERM and SIGHUP that sets ``received`` instead of ending the process.

    It is installed when the object is created, and also disables the thread of flows/cli/exits.py that ends
    the process shortly after a signal.
    """

    def __init__(self) -> None:
        self.received = False
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._record)

    def _record(self, number: int, frame: FrameType | None) -> None:
        self.received = True


class Supervisor:
    """Starts processes, records them in ``up.json``, and stops all of them after a signal or a failure."""

    def __init__(
        self, home: Path, record: RunningProcesses, environment: Mapping[str, str], signals: StopSignals
    ) -> None:
        self.home, self.record, self.environment, self._signals = home, record, environment, signals
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._one_shot: set[str] = set()

    @property
    def is_stopped(self) -> bool:
        """Whether a signal to stop has arrived."""
        return self._signals.received

    def start(self, name: str, *command: str, folder: Path = ROOT, one_shot: bool = False) -> None:
        """Starts ``python -m COMMAND`` and adds the process to the record. Does nothing after a signal.

        Args:
            name: Name of the process in the record, and of its log file.
            command: Python module and its arguments.
            folder: Working folder.
            one_shot: Whether the process ends by itself when its work is done.
        """
        if one_shot:
            self._one_shot.add(name)
        if not self.is_stopped:
            command_line = [sys.executable, "-m", *command]
            log = self._log_file(name)
            identity, process = start_process(name, command_line, log, self.environment, folder)
            self._running[name] = process
            self.record.processes.append(identity)
            write_record(self.home, self.record)

    def wait(self, is_done: Callable[[], bool]) -> None:
        """Waits until ``is_done`` returns True, or a signal is received.

        Raises:
            ProcessEnded: A process has ended unexpectedly, or the wait exceeds START_TIMEOUT_SECONDS.
        """
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while not (self.is_stopped or is_done()):
            self.poll()
            if time.monotonic() > deadline:
                problem = f"the servers are not ready after {START_TIMEOUT_SECONDS:.0f} s"
                raise ProcessEnded(f"{problem}; the logs are in {self.home / 'logs'}")

    def remove_finished(self, name: str) -> bool:
        """Returns whether a process has ended successfully; if so, removes it from the record ``up.json``."""
        if self._running[name].poll() != 0:
            return False
        del self._running[name]
        self.record.processes[:] = [process for process in self.record.processes if process.name != name]
        write_record(self.home, self.record)
        return True

    def poll(self) -> None:
        """Sleeps for POLL_SECONDS, and raises ProcessEnded if a process has ended unexpectedly."""
        time.sleep(POLL_SECONDS)
        for name, process in self._running.items():
            if process.poll() is not None and (process.returncode or name not in self._one_shot):
                raise ProcessEnded(f"{name} {describe_exit(process, self._log_file(name))}")

    def stop_all(self) -> None:
        """Terminates all processes and removes them from the record ``up.json``."""
        terminate(self.record.processes)
        for process in self._running.values():
            process.wait()
        self.record.processes.clear()
        write_record(self.home, self.record)

    def _log_file(self, name: str) -> Path:
        return self.home / "logs" / f"{name.lower()}.log"
