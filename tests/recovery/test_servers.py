"""Kills of the flow's process, the worker, Prefect's server, MLflow's server and PostgreSQL at random moments
of a night that a worker runs: Retry or the next night completes, and leaves what an undisturbed one does."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storage.tracking import Registry
from tests.contents import night_contents
from tests.recovery.nights import check_nothing_is_left, finished, moment, wait_for_lines
from tests.recovery.site import Servers, standing

pytest.importorskip("psycopg2", reason="psycopg2 is not installed: pip install -e '.[server]'")
pytestmark = [pytest.mark.soak, pytest.mark.timeout(1200)]
KINDS = ("flow", "worker", "prefect", "mlflow", "database")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with standing(tmp_path_factory.mktemp("servers")) as servers:
        yield servers


@pytest.fixture(scope="module")
def undisturbed(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], int]:
    """What a night leaves, and the lines that it prints."""
    home, before = tmp_path_factory.mktemp("undisturbed") / "home", servers.printed()
    assert servers.wait(servers.trigger(home)) == "Completed", servers.log.read_text(encoding="utf-8")
    return night_contents(home), servers.printed() - before


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", KINDS)
def test_a_kill_and_what_follows(
    kind: str,
    seed: int,
    servers: Servers,
    undisturbed: tuple[dict[str, Any], int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of even seeds by Retry, of odd ones by the next night; the worker dies alone, or with its run."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", servers.mlflow)
    home, (contents, most) = tmp_path / "home", undisturbed
    run, printed = servers.trigger(home), servers.printed()

    def has_ended() -> bool:
        return servers.ask(f"/flow_runs/{run}")["state_type"] == "COMPLETED"

    wait_for_lines(servers.log, moment(seed, most), has_ended, printed)
    before, told = finished(home), servers.log.read_text(encoding="utf-8").splitlines()[-1]
    servers.kill(kind, *(["flow"] if kind == "worker" and seed % 4 > 1 else []))
    if kind != "flow":
        time.sleep(1)
        servers.start(kind)
    state = servers.wait(run)
    print(f"{kind} {seed}: {len(before)} folders, {told[:110]!r}: {state}", flush=True)
    if state != "Completed":
        time.sleep(5)  # the worker may report a crash twice
        if seed % 2:
            run = servers.trigger(home)
        else:
            servers.retry(run)
        assert servers.wait(run) == "Completed", servers.log.read_text(encoding="utf-8")[-6000:]
    assert night_contents(home) == contents
    check_nothing_is_left(home, before)
    assert servers.running() == []


def test_two_homes_at_once_keep_their_champions(
    servers: Servers,
    undisturbed: tuple[dict[str, Any], int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", servers.mlflow)
    homes = [tmp_path / name / "home" for name in ("production", "smoke")]
    runs = [servers.trigger(home) for home in homes]
    assert [servers.wait(run) for run in runs] == ["Completed", "Completed"], servers.log.read_text(
        encoding="utf-8"
    )
    names = {Registry(home).name for home in homes}
    assert len(names) == 2 and all(name.startswith("guidespace-titles-home-") for name in names)
    for home in homes:
        champion = Registry(home).champion()
        assert champion is not None and champion.digest == night_contents(home)["model"]
        assert night_contents(home) == undisturbed[0]
        check_nothing_is_left(home, {})
