"""A night that is disturbed once at a random moment, and what must be true after the next one."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from storage.tracking import Registry, Tracking
from tests.flows.command import ROOT, SAMPLE

SECONDS = 280.0  # for a night, beside other work
CHANGES = (
    'evaluate.baselines=[{"name":"majority"}]',
    "evaluate.resamples=100",
    "preprocess.sentences.descriptions=0",
)
WAITING = "at work for"  # lines that say only that time passes


def environment(**more: str) -> dict[str, str]:
    """This process' without what would lead elsewhere."""
    elsewhere = ("PREFECT_", "MLFLOW_", "GUIDESPACE_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(elsewhere)}
    return {**kept, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT), **more}


@dataclass(frozen=True)
class Said:
    """How a command ended and what it printed."""

    code: int
    output: str
    errors: str


def night(
    home: Path,
    disturb: Callable[[subprocess.Popen[bytes]], None] | None = None,
    after: float = 0,
    changes: Sequence[str] = (),
) -> Said:
    """``guidespace nightly`` on the sample guide; ``disturb`` is called ``after`` lines, and a fraction of a
    second, unless it has ended by then."""
    command = [sys.executable, "-m", "flows", "nightly", "--feed", SAMPLE, "--home", home]
    command += ["--preset", "smoke", "--set", *CHANGES, *changes]
    logs = [home.parent.parent / f"{home.parent.name}.{name}" for name in ("output", "errors")]
    with open(logs[0], "wb") as output, open(logs[1], "wb") as errors:
        process = subprocess.Popen(
            [*map(str, command)], cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL,
            stdout=output, stderr=errors, start_new_session=True,
        )  # fmt: skip
    try:
        if disturb and wait_for_lines(logs[0], after, lambda: process.poll() is not None):
            disturb(process)
        process.wait(SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return Said(process.returncode, *(log.read_text(encoding="utf-8") for log in logs))


def lines(text: str) -> int:
    """Lines that tell of something done."""
    return sum(WAITING not in line for line in text.splitlines())


def wait_for_lines(log: Path, number: float, has_ended: Callable[[], bool], before: int = 0) -> bool:
    """Waits until a log has so many lines more than ``before``, and a fraction of a second: the moment is a
    part of the work, not of the clock. False where the run has ended by then."""
    deadline = time.monotonic() + SECONDS
    while not log.exists() or lines(log.read_text(errors="replace", encoding="utf-8")) - before < int(number):
        if has_ended() or time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    time.sleep(number % 1)
    return not has_ended()


def moment(seed: int, most: int) -> float:
    """Lines that a night has printed when it is disturbed, and a fraction of a second."""
    return random.Random(seed).uniform(1, most)


def finished(home: Path) -> dict[str, int]:
    """Published folders and what tells a folder from one that was written again."""
    return {
        file.parent.relative_to(home).as_posix(): file.parent.stat().st_ino
        for file in home.glob("artifacts/*/*/artifact.json")
        if file.parent.suffix != ".tmp"
    }


def check_nothing_is_left(home: Path, before: dict[str, int]) -> None:
    """No half an artifact, no stage done twice, one champion, no run that nobody runs."""
    assert not [*home.glob("artifacts/*/*.tmp"), *home.glob("artifacts/*/*.partial")]
    after = finished(home)
    again = [name for name in before if after[name] != before[name]]
    assert not again, f"finished and done again: {again}"
    tracking, registry = Tracking(home), Registry(home)
    runs = tracking.client.search_runs([tracking.experiment_id])
    statuses = [run.info.status for run in runs]
    assert "RUNNING" not in statuses and statuses[0] == "FINISHED", statuses
    aliases = registry.client.get_registered_model(registry.name).aliases
    versions = registry.client.search_model_versions(f"name = '{registry.name}'")
    found = {name: str(version) for name, version in aliases.items()}, [str(one.version) for one in versions]
    assert found == ({"champion": "1", "challenger": "1"}, ["1"]), found
    assert registry.champion()
