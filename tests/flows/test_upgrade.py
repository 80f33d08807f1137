"""A home of an earlier commit is read and continued."""

import gzip
import io
import json
import os
import sqlite3
import subprocess
import tarfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from flows.cli.main import main
from storage.tracking import Registry, Tracking
from tests.flows.command import QUICK_NIGHT, ROOT, SAMPLE, guidespace
from tests.flows.serve_process import serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TITLE, NEIGHBOUR, ADDED = "Murder, She Wrote", "Midsomer Murders", "A Lantern in the Fog"
EVENING = "--from", "2026-01-12T00:00+00:00", "--hours", "120"
# The first commit has no votes of held-out titles in its models, no likes and no corrections; the second has.
WITHOUT_VOTES, WITH_LIKES = "9ea52b2", "d732fe1"


class Upgrade(NamedTuple):
    """Home, and the guide from which it was filled."""

    home: Path
    guide: Path


@pytest.fixture
def upgrade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Upgrade:
    """Home after a night of an earlier commit, with a like and a correction of another earlier commit.

    The commits run with the packages of this environment.
    """
    for name in [name for name in os.environ if name.startswith(("PREFECT_", "MLFLOW_", "GUIDESPACE_"))]:
        monkeypatch.delenv(name)
    home, guide = tmp_path / "home", tmp_path / "guide.xml.gz"
    guide.write_bytes(SAMPLE.read_bytes())

    def run_old(code: Path, *arguments: object) -> None:
        done = guidespace(*arguments, "--home", home, cwd=code, PYTHONPATH=str(code))
        assert done.returncode == 0, done.stdout + done.stderr

    run_old(extract(WITHOUT_VOTES, tmp_path), "nightly", "--feed", guide, "--preset", "smoke")
    code = extract(WITH_LIKES, tmp_path)
    run_old(code, "like", TITLE)
    run_old(code, "correct", NEIGHBOUR, "crime")
    return Upgrade(home, guide)


def extract(commit: str, folder: Path) -> Path:
    """Writes the files of a commit to a new folder; skips the test if this clone does not have it."""
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True)
    if archive.returncode:
        pytest.skip(f"commit {commit} is not in this clone: git fetch --unshallow")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder / commit, filter="data")
    return folder / commit


@pytest.fixture
def read(upgrade: Upgrade, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command on the home in this process: what it prints, errors if another ``code`` is expected."""

    def run(*arguments: str, code: int = 0) -> str:
        capsys.readouterr()
        ended = main([*map(str, arguments), "--home", str(upgrade.home)])
        printed = capsys.readouterr()
        assert ended == code and "Traceback" not in printed.err, printed.out + printed.err
        return printed.err if code else printed.out

    return run


def test_a_home_of_an_earlier_version_answers_and_runs_a_night(
    upgrade: Upgrade, read: Callable[..., str], tmp_path: Path
) -> None:
    home, guide = upgrade
    read_everything(read)
    refused = read("enrich", str(guide), str(tmp_path / "filled.xml.gz"), code=2)
    assert "the champion model was made by an older version" in refused and "guidespace nightly" in refused

    with serving(home, tmp_path / "serve.log") as (url, _, log):
        assert nearest(url) == ("1", NEIGHBOUR)
        add_programme(guide)
        assert "is champion" in run_night(home, guide, "--promote")
        wait_until(lambda: nearest(url)[0] == "2", log)
        assert nearest(url)[1] == NEIGHBOUR

    read_everything(read)
    assert ADDED in read("sql", f"SELECT DISTINCT title FROM programmes WHERE title = '{ADDED}'")
    read("enrich", str(guide), str(tmp_path / "filled.xml.gz"))
    read("explain", TITLE)
    check_runs(home, nights=2)

    assert "version 1" in read("rollback")
    assert (champion := Registry(home).champion()) and champion.version == "1"
    assert NEIGHBOUR in read("similar", TITLE)


def read_everything(read: Callable[..., str]) -> None:
    assert "9,93" in read("status")
    assert "unseen_title" in read("scores")
    assert NEIGHBOUR in read("similar", TITLE)
    count = json.loads(
        read("sql", "SELECT count(*) AS titles FROM neighbours JOIN clusters USING (title_id)", "--json")
    )
    assert count[0]["titles"] > 1000
    assert NEIGHBOUR in read("correct", "--list")
    assert NEIGHBOUR in read("tonight", *EVENING)
    assert "would be removed" in read("gc", "--dry-run")
    assert "the catalogue opens" in read("doctor")


def run_night(home: Path, guide: Path, *arguments: str) -> str:
    done = guidespace(
        "nightly", "--feed", guide, "--home", home, "--preset", "smoke", *arguments, "--set", *QUICK_NIGHT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def add_programme(guide: Path) -> None:
    """Adds a programme of a new title to the guide."""
    text = gzip.decompress(guide.read_bytes()).decode()
    channel = text.partition('<channel id="')[2].partition('"')[0]
    times = 'start="20260119200000 +0000" stop="20260119210000 +0000"'
    programme = f'<programme {times} channel="{channel}"><title>{ADDED}</title></programme>\n</tv>'
    guide.write_bytes(gzip.compress(text.replace("</tv>", programme).encode()))


def nearest(url: str) -> tuple[str, str]:
    """Returns the version of the served model, and the title that it finds nearest to TITLE."""
    answer: dict[str, Any] = httpx.post(f"{url}/similar", json={"titles": [TITLE]}, timeout=60).json()
    return answer["model"]["version"], json.dumps(answer["answers"]).partition(NEIGHBOUR)[1]


def wait_until(condition: Callable[[], bool], log: Path) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, log.read_text(encoding="utf-8")
        time.sleep(0.2)


def check_runs(home: Path, nights: int) -> None:
    """Asserts that Prefect and MLflow have every night, including the earlier ones, as finished."""
    with closing(sqlite3.connect(home / "prefect" / "prefect.db")) as database:
        states = database.execute(
            "SELECT state_name FROM flow_run WHERE parent_task_run_id IS NULL"
        ).fetchall()
    assert states == [("Completed",)] * nights
    tracking = Tracking(home)
    runs = tracking.mlflow.client.search_runs([tracking.mlflow.experiment_id], "attributes.run_name != ''")
    assert [run.info.status for run in runs] == ["FINISHED"] * nights
