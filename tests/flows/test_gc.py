"""``guidespace gc`` on a home with a night."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys

import pytest

from storage.home.marker import write_marker
from storage.home.workspace import Workspace
from storage.stages import ROOT
from tests.flows.command import answer, guidespace

LATER = """
import datetime, sys
from pathlib import Path
from flows.server import start_prefect
start_prefect(sys.argv[1])()
from flows.gc import prune_flow_runs
home = Path(sys.argv[1])
for moment, dry_run in ((-1, False), (1, True), (1, False)):
    when = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=moment)
    print(prune_flow_runs(home, when, dry_run).count)
"""


def count(database, table):
    with contextlib.closing(sqlite3.connect(database)) as connection:
        return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


@pytest.mark.slow
def test_a_home_after_gc_answers_as_before(copy_night, tmp_path):
    home = copy_night(tmp_path / "home")
    write_marker(home, folder=str(home))  # as if it had been moved: the runs in its databases are its own
    spare = home / "artifacts" / "corpus" / "spare"
    shutil.copytree(next((home / "artifacts" / "corpus").glob("*/")), spare)
    for path in (spare / "artifact.json", spare):
        os.utime(path, (0, 0))  # of an older night
    before = answer("similar", "Evening News", "--home", home, "--json")
    told = answer("gc", "--home", home, "--nights", 1, "--dry-run", "--json")
    assert spare.exists() and {one["what"]: one["count"] for one in told} == {
        "artifacts": 1,
        "replaced programmes": 0,
        "models": 0,
        "runs in MLflow": 0,
        "fetched champions": 0,
        "copies of models": 0,
        "runs in Prefect": 0,
    }
    done = guidespace("gc", "--home", home, "--nights", 1)
    assert done.returncode == 0 and "artifacts: 1 removed, " in done.stdout
    assert len(list((home / "artifacts" / "corpus").glob("*/"))) == 1
    assert answer("similar", "Evening News", "--home", home, "--json") == before
    assert answer("scores", "--home", home, "--json")["champion"]
    (database,) = home.rglob("prefect.db")
    assert count(database, "flow_run") == 1 and count(database, "artifact") > 3 and count(database, "log")
    done = subprocess.run(
        [sys.executable, "-c", LATER, str(home)], cwd=ROOT, capture_output=True, encoding="utf-8"
    )
    assert done.stdout.split() == ["0", "1", "1"], done.stderr
    assert all(
        count(database, table) == 0 for table in ("flow_run", "task_run", "artifact", "flow_run_state", "log")
    )


@pytest.mark.slow
def test_gc_fails_during_a_run(copy_night, tmp_path):
    home = copy_night(tmp_path / "home")
    with Workspace(home).writing("a night"):
        done = guidespace("gc", "--home", home)
    assert (
        done.returncode == 2 and "is being written by process" in done.stderr and "(a night)" in done.stderr
    )
