"""A night with one disturbance at a seeded moment, and checks after the next night."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from storage.tracking import Registry, Tracking
from tests.flows.command import QUICK_NIGHT, ROOT, SAMPLE

SECONDS = 280.0  # for a night, beside other work
SECONDS_WITHIN = 0.3  # less than any night takes from "promote done" to its end
WAITING = "running for"  # lines that say only that time passes

DONE = re.compile(r"(?:s  |Task run ')(\w+)(?: +|' - Finished in state )(?:done|unchanged|Completed|Cached)")


def environment(**more: str) -> dict[str, str]:
    """Returns the environment of this process without variables that name other servers or homes."""
    elsewhere = ("PREFECT_", "MLFLOW_", "GUIDESPACE_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(elsewhere)}
    return {**kept, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT), **more}


@dataclass(frozen=True)
class Ended:
    """Exit code and output of a command; ``before`` is its output until it was disturbed."""

    code: int
    output: str
    errors: str
    before: str = ""


def night(
    home: Path,
    disturb: Callable[[subprocess.Popen[bytes]], None] | None = None,
    after: float = 0,
    changes: Sequence[str] = (),
) -> Ended:
    """``guidespace nightly`` on the sample guide; ``disturb`` is called ``after`` lines. Fails if the command
    has ended before."""
    command = [sys.executable, "-m", "flows", "nightly", "--feed", SAMPLE, "--home", home]
    command += ["--preset", "smoke", "--set", *QUICK_NIGHT, *changes]
    logs = [home.parent.parent / f"{home.parent.name}.{name}" for name in ("output", "errors")]
    with open(logs[0], "wb") as output, open(logs[1], "wb") as errors:
        process = subprocess.Popen(
            [*map(str, command)], cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL,
            stdout=output, stderr=errors, start_new_session=True,
        )  # fmt: skip
    before = ""
    try:
        if disturb:
            wait_for_lines(logs[0], after, lambda: process.poll() is not None)
            before = logs[0].read_text(encoding="utf-8")
            disturb(process)
        process.wait(SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return Ended(process.returncode, *(log.read_text(encoding="utf-8") for log in logs), before)


def lines(text: str) -> int:
    """Returns the number of lines that report progress."""
    return sum(WAITING not in line for line in text.splitlines())


def wait_for_lines(log: Path, number: float, has_ended: Callable[[], bool], before: int = 0) -> None:
    """Waits until a log has ``number`` lines more than ``before``, and for its fraction of SECONDS_WITHIN, to
    reach the middle of a stage. Fails if the run has ended by then: there is nothing left to disturb."""

    def printed() -> str:
        return log.read_text(errors="replace", encoding="utf-8") if log.exists() else ""

    deadline = time.monotonic() + SECONDS
    while lines(printed()) - before < int(number):
        assert not has_ended(), f"the run ended before line {number:.1f}: {printed()[-2000:]}"
        assert time.monotonic() < deadline, f"line {number:.1f} not printed within {SECONDS:.0f} s"
        time.sleep(0.05)
    time.sleep(number % 1 * SECONDS_WITHIN)
    assert not has_ended(), f"the run ended before line {number:.1f}: {printed()[-2000:]}"


def moment(seed: int, undisturbed: str, last: str) -> float:
    """Lines after which a night is disturbed, with a fraction: at most as many as an undisturbed one prints
    until ``last`` is done."""
    end = next(found.end() for found in DONE.finditer(undisturbed) if found[1] == last)
    return random.Random(seed).uniform(1, lines(undisturbed[:end]))


def done_stages(printed: str) -> list[str]:
    """Returns the stages that the log of a command or worker reports as finished, in that order."""
    return [found[1] for found in DONE.finditer(printed)]


def interrupted_stage(before: str, undisturbed: str) -> str:
    """Returns the first stage that had not finished when the night was disturbed."""
    done = done_stages(before)
    unfinished = [stage for stage in done_stages(undisturbed) if stage not in done]
    assert unfinished, f"every stage had finished: {before[-2000:]}"
    return unfinished[0]


def finished(home: Path) -> dict[str, int]:
    """Returns the published folders, with values that change if a folder is written again."""
    return {
        file.parent.relative_to(home).as_posix(): file.parent.stat().st_ino
        for file in home.glob("artifacts/*/*/artifact.json")
        if file.parent.suffix != ".tmp"
    }


def check_no_leftovers(home: Path, before: dict[str, int]) -> None:
    """Asserts: no partial artifact, no stage run twice, one champion, and no run without a process."""
    assert not [*home.glob("artifacts/*/*.tmp"), *home.glob("artifacts/*/*.partial")]
    after = finished(home)
    again = [name for name in before if after[name] != before[name]]
    assert not again, f"finished and done again: {again}"
    tracking, registry = Tracking(home), Registry(home)
    runs = tracking.mlflow.client.search_runs([tracking.mlflow.experiment_id])
    statuses = [run.info.status for run in runs]
    assert "RUNNING" not in statuses and statuses[0] == "FINISHED", statuses
    aliases = registry.mlflow.client.get_registered_model(registry.name).aliases
    versions = registry.mlflow.client.search_model_versions(f"name = '{registry.name}'")
    found = {name: str(version) for name, version in aliases.items()}, [str(one.version) for one in versions]
    assert found == ({"champion": "1", "challenger": "1"}, ["1"]), found
    assert registry.champion()
