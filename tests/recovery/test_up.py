"""``guidespace up`` killed at seeded moments, while it starts and while a night runs: the next one stands,
and Retry or the next night completes, and leaves what an undisturbed one does."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.up.processes import read_record
from tests.contents import night_contents
from tests.flows.command import QUICK_NIGHT, ROOT
from tests.flows.up_process import Up, standing, until
from tests.recovery.nights import (
    SECONDS_WITHIN,
    check_no_leftovers,
    environment,
    finished,
    interrupted_stage,
    moment,
    wait_for_lines,
)

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1200)]
STARTING = ("nothing", "Prefect", "deployments", "MLflow")  # what ``up`` has started when it is killed


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Home of ``up``, whose MLflow is used by all homes below it."""
    home = tmp_path_factory.mktemp("up") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{home}/mlflow.db")
        yield home


@pytest.fixture(scope="module")
def undisturbed(place: Path) -> tuple[dict[str, Any], str]:
    """What a night writes, and what the worker prints, if nothing disturbs them."""
    with standing(place) as up:
        up.wait(up.trigger("nightly-smoke", {"home": str(place / "first"), "changes": list(QUICK_NIGHT)}))
        return night_contents(place / "first"), (place / "logs" / "worker.log").read_text(encoding="utf-8")


@pytest.mark.parametrize("seed", range(20))
def test_a_kill_during_a_night(place: Path, undisturbed: tuple[dict[str, Any], str], seed: int) -> None:
    """Of even seeds by Retry, of odd ones by the next night."""
    home, (contents, printed) = place / f"night-{seed}", undisturbed
    parameters, log = {"home": str(home), "changes": list(QUICK_NIGHT)}, place / "logs" / "worker.log"
    with standing(place) as up:
        run = up.trigger("nightly-smoke", parameters)

        def state(of: Up) -> str:
            return of.get(f"/flow_runs/{run}")["state_name"]

        until(lambda: state(up) == "Running", log.read_text)
        wait_for_lines(log, moment(seed, printed, "promote"), lambda: state(up) != "Running")
        up.process.kill()
        assert up.process.wait() == -signal.SIGKILL
        stage, before = interrupted_stage(log.read_text(encoding="utf-8"), printed), finished(home)
        with standing(place) as second:  # the first one's servers, worker and flow run are at work until then
            after = state(second)
            log_text = log.with_name("worker.log.1").read_text(encoding="utf-8")
            print(f"up {seed}: {stage} interrupted, then {after}", flush=True)
            if after == "Completed":  # it may have been stopped before it logged its state
                assert "Task run 'report' - Finished in state Completed" in log_text
            else:
                assert after == "Crashed" and "Finished in state Completed" not in flow_lines(log_text)
            if after == "Crashed" and seed % 2:
                run = second.trigger("nightly-smoke", parameters)
            elif after == "Crashed":
                retry = {"state": {"type": "SCHEDULED", "name": "AwaitingRetry"}, "force": True}
                second.post(f"/flow_runs/{run}/set_state", retry)
            second.wait(run)
            running = {"flow_runs": {"state": {"type": {"any_": ["RUNNING", "PENDING"]}}}}
            assert second.post("/flow_runs/filter", running) == []
    assert night_contents(home) == contents
    check_no_leftovers(home, before)


def flow_lines(log: str) -> str:
    """Returns the lines about flow runs, not task runs, in the log of a worker."""
    return "\n".join(line for line in log.splitlines() if "Flow run '" in line)


@pytest.mark.parametrize("seed", range(20))
def test_a_kill_while_it_starts(tmp_path: Path, seed: int) -> None:
    home = tmp_path / "home"
    command = [sys.executable, "-m", "flows", "up", "--home", str(home)]
    with open(tmp_path / "printed.txt", "wb") as printed:
        first = subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=printed, stderr=printed)
    wanted = STARTING[seed % len(STARTING)]

    def started() -> list[str]:
        """Returns the names of the processes that ``up`` has started; "nothing" once it has its record."""
        record = read_record(home)
        return ["nothing", *(each.name for each in record.processes)] if record else []

    until(lambda: wanted in started(), (tmp_path / "printed.txt").read_text)
    time.sleep(random.Random(seed).uniform(0, SECONDS_WITHIN))
    first.kill()
    assert first.wait() == -signal.SIGKILL
    assert "Started in" not in (tmp_path / "printed.txt").read_text(encoding="utf-8")
    print(f"up {seed}, starting: killed after {started()[-1]}", flush=True)
    assert wanted in started()
    with standing(home) as up:
        assert {each["name"] for each in up.record["processes"]} == {"Prefect", "MLflow", "worker"}
        assert len(up.post("/deployments/filter")) == 10
