"""Runs ``guidespace nightly`` and measures time and memory of all its processes by stage."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PAGE, TICKS = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
ENDED = re.compile(r"^ *[\d.]+ s  (\w+) +(?:done|unchanged)")


@dataclass(frozen=True)
class Stage:
    """Time and memory of a stage, measured until the run printed its end; parallel stages share figures."""

    name: str
    ended: float  # seconds since the start of the run
    cpu: float  # seconds of all processes since the end of the previous stage in this list
    peak: float  # bytes of all processes in the same period


@dataclass(frozen=True)
class Night:
    """Time and memory of a successful nightly run."""

    seconds: float
    cpu: float  # seconds of all processes
    peak: float  # bytes: the largest sum of resident sets, sampled every 0.2 s
    stages: Sequence[Stage]
    output: str


def run_night(home: Path, feeds: Sequence[Path]) -> Night:
    """Runs ``guidespace nightly`` with preset laptop; ends the program if the run fails."""
    command = [sys.executable, "-m", "flows", "nightly", "--home", str(home), "--feed", *map(str, feeds)]
    started, output, stages, ended = time.perf_counter(), [], [], threading.Event()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8")
    peak = recent_peak = cpu = 0.0

    def watch() -> None:
        nonlocal peak, recent_peak, cpu
        while not ended.wait(0.2):
            resident, used = _tree(process.pid)
            peak, recent_peak, cpu = max(peak, resident), max(recent_peak, resident), max(cpu, used)

    watcher = threading.Thread(target=watch)
    watcher.start()
    assert process.stdout is not None
    before = 0.0
    for line in process.stdout:
        output.append(line)
        if match := ENDED.match(line):
            stages.append(Stage(match[1], time.perf_counter() - started, cpu - before, recent_peak))
            print(f"{stages[-1]}", file=sys.stderr, flush=True)
            recent_peak, before = 0.0, cpu
    status = process.wait()
    seconds = time.perf_counter() - started
    ended.set()
    watcher.join()
    if status:
        sys.exit(f"the nightly run ended with {status}:\n{''.join(output)}")
    return Night(seconds, cpu, peak, stages, "".join(output))


def _tree(root: int) -> tuple[float, float]:
    """Returns the resident bytes and CPU seconds of a process and its descendants, including ended ones."""
    processes: dict[int, tuple[int, float]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            except OSError:
                continue
            processes[int(entry.name)] = int(fields[1]), sum(map(int, fields[11:15])) / TICKS
    tree, before = {root}, 0
    while len(tree) != before:
        before = len(tree)
        tree |= {child for child, (parent, _) in processes.items() if parent in tree}
    resident = 0
    for pid in tree:
        try:
            resident += int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1]) * PAGE
        except OSError:
            continue
    return float(resident), sum(processes[pid][1] for pid in tree if pid in processes)
