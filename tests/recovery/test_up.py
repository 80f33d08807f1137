"""``guidespace up`` killed at random moments, while it starts and while a night runs: the next one stands,
and Retry or the next night completes, and leaves what an undisturbed one does."""

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contents import night_contents
from tests.flows.command import ROOT
from tests.flows.up_process import standing
from tests.recovery.nights import (
    CHANGES,
    check_nothing_is_left,
    environment,
    finished,
    lines,
    moment,
    wait_for_lines,
)

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1200)]
SECONDS_TO_STAND = 30.0  # about as long as the first start takes


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of ``up``, whose MLflow all homes below it use."""
    home = tmp_path_factory.mktemp("up") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{home}/mlflow.db")
        yield home


@pytest.fixture(scope="module")
def undisturbed(place: Path) -> tuple[dict[str, Any], int]:
    """What a night leaves, and the lines that it prints."""
    with standing(place) as up:
        up.wait(up.trigger("nightly-smoke", {"home": str(place / "first"), "changes": list(CHANGES)}))
        return night_contents(place / "first"), lines(
            (place / "logs" / "worker.log").read_text(encoding="utf-8")
        )


@pytest.mark.parametrize("seed", range(20))
def test_a_kill_during_a_night(place: Path, undisturbed: tuple[dict[str, Any], int], seed: int) -> None:
    """Of even seeds by Retry, of odd ones by the next night."""
    home, (contents, most) = place / f"night-{seed}", undisturbed
    parameters = {"home": str(home), "changes": list(CHANGES)}
    with standing(place) as up:
        run = up.trigger("nightly-smoke", parameters)

        def has_ended() -> bool:
            return up.get(f"/flow_runs/{run}")["state_type"] == "COMPLETED"

        wait_for_lines(place / "logs" / "worker.log", moment(seed, most), has_ended)
        up.process.kill()
        up.process.wait()
        before = finished(home)
        with standing(place) as second:  # the first one's servers, worker and flow run are at work until then
            state = second.get(f"/flow_runs/{run}")["state_name"]
            print(f"up {seed}: {len(before)} folders: {state}", flush=True)
            assert state in ("Completed", "Crashed", "Scheduled", "Late", "Pending", "Running"), state
            if state == "Crashed" and seed % 2:
                run = second.trigger("nightly-smoke", parameters)
            elif state == "Crashed":
                retry = {"state": {"type": "SCHEDULED", "name": "AwaitingRetry"}, "force": True}
                second.post(f"/flow_runs/{run}/set_state", retry)
            second.wait(run)
            running = {"flow_runs": {"state": {"type": {"any_": ["RUNNING", "PENDING"]}}}}
            assert second.post("/flow_runs/filter", running) == []
    assert night_contents(home) == contents
    check_nothing_is_left(home, before)


@pytest.mark.parametrize("seed", range(20))
def test_a_kill_while_it_starts(tmp_path: Path, seed: int) -> None:
    home = tmp_path / "home"
    command = [sys.executable, "-m", "flows", "up", "--home", str(home)]
    with open(tmp_path / "printed.txt", "wb") as printed:
        first = subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=printed, stderr=printed)
    time.sleep(random.Random(seed).uniform(2, SECONDS_TO_STAND))
    first.kill()
    first.wait()
    print(f"up {seed}, starting:", *sorted(file.name for file in home.glob("logs/*")), flush=True)
    with standing(home) as up:
        assert {each["name"] for each in up.record["processes"]} == {"Prefect", "MLflow", "worker"}
        assert len(up.post("/deployments/filter")) == 10
