"""Kills of the flow's process, the worker, Prefect's server, MLflow's server and PostgreSQL at seeded moments
of a night that a worker runs: Retry or the next night completes, and leaves what an undisturbed one does."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storage.tracking import Registry
from tests.contents import night_contents
from tests.recovery.nights import (
    check_no_leftovers,
    finished,
    interrupted_stage,
    lines,
    moment,
    wait_for_lines,
)
from tests.recovery.site import ENDED, Servers, standing, until

pytest.importorskip("psycopg2", reason="psycopg2 is not installed: pip install -e '.[server]'")
pytestmark = [pytest.mark.soak, pytest.mark.timeout(1200)]
ENDS = {  # states of the run after a kill during its work, once what was killed has been started again
    "flow": {"Crashed"},
    "worker": {"Crashed"},  # its output is a pipe to the worker: rich ends the process at the next log line
    "worker and flow": {"Crashed"},
    "prefect": {"Completed", "Crashed"},
    "mlflow": {"Completed"},
    "database": {"Completed", "Crashed", "Failed"},
}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with standing(tmp_path_factory.mktemp("servers")) as servers:
        yield servers


@pytest.fixture(scope="module")
def undisturbed(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    """What a night writes and prints if nothing disturbs it."""
    home, before = tmp_path_factory.mktemp("undisturbed") / "home", len(servers.printed())
    assert servers.wait(servers.trigger(home)) == "Completed", servers.printed()
    return night_contents(home), servers.printed()[before:]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", ["flow", "worker", "prefect", "mlflow", "database"])
def test_a_kill_and_what_follows(
    kind: str,
    seed: int,
    servers: Servers,
    undisturbed: tuple[dict[str, Any], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of even seeds by Retry, of odd ones by the next night; the worker dies alone, or with its run."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", servers.mlflow)
    home, (contents, printed) = tmp_path / "home", undisturbed
    earlier = servers.printed()
    run = servers.trigger(home)

    after = moment(seed, printed, "promote")
    wait_for_lines(servers.log, after, lambda: servers.state(run) in ENDED, lines(earlier))
    killed = [kind, "flow"] if kind == "worker" and seed % 4 > 1 else [kind]
    if "flow" in killed:
        until(lambda: bool(servers.processes("flow")), servers.log)
    at_kill, before = servers.state(run), finished(home)
    servers.kill(*killed)
    stage = interrupted_stage(servers.printed()[len(earlier) :], printed)
    if kind != "flow":
        time.sleep(1)  # as a supervisor does
        servers.start(kind)
    state = servers.wait(run)
    message = servers.ask(f"/flow_runs/{run}")["state"]["message"]
    print(
        f"{' and '.join(killed)} {seed}: {stage} interrupted, {at_kill}, then {state}: {message}", flush=True
    )
    assert at_kill == "RUNNING" or (at_kill == "PENDING" and stage == "ingest"), at_kill
    ends = ENDS[" and ".join(killed)] | ({"Crashed"} if at_kill == "PENDING" else set())
    assert state in ends, servers.printed()[-6000:]
    if state != "Completed":
        if killed == ["flow"]:  # the worker handles the crash a second time, and would crash a Retry by that
            again = "prefect.flow_runs.worker - Check whether the flow run exceeded"
            until(lambda: again in servers.printed()[len(earlier) :], servers.log)
        if seed % 2:
            run = servers.trigger(home)
        else:
            servers.retry(run)
        assert servers.wait(run) == "Completed", servers.printed()[-6000:]
    assert night_contents(home) == contents
    check_no_leftovers(home, before)
    assert servers.running() == []


def test_two_homes_at_once_keep_their_champions(
    servers: Servers, undisturbed: tuple[dict[str, Any], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", servers.mlflow)
    homes = [tmp_path / name / "home" for name in ("production", "smoke")]
    runs = [servers.trigger(home) for home in homes]
    assert [servers.wait(run) for run in runs] == ["Completed", "Completed"], servers.printed()
    names = {Registry(home).name for home in homes}
    assert len(names) == 2 and all(name.startswith("guidespace-titles-home-") for name in names)
    for home in homes:
        champion = Registry(home).champion()
        assert champion is not None and champion.digest == night_contents(home)["model"]
        assert night_contents(home) == undisturbed[0]
        check_no_leftovers(home, {})
