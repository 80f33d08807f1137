"""A backup of a home: it tears no run, and what it restores answers and goes on; and the systemd units."""

import contextlib
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from storage.stages import ROOT
from storage.workspace import Workspace
from tests.flows.command import SAMPLE, answer, guidespace

SCRIPT = ROOT / "deployments" / "backup.sh"
UNITS = ROOT / "deployments" / "systemd"
needs_tools = pytest.mark.skipif(
    not all(map(shutil.which, ("flock", "sqlite3", "tar"))), reason="needs flock, sqlite3 and tar"
)


def backup(home: Path, archive: Path, wait_seconds: int = 0) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "WAIT_SECONDS": f"{wait_seconds}"}
    command = [str(SCRIPT), str(home), str(archive)]
    return subprocess.run(command, env=environment, capture_output=True, encoding="utf-8")


@needs_tools
def test_an_archive_has_every_committed_row_and_no_home_within(tmp_path: Path) -> None:
    home, archive = tmp_path / "home", tmp_path / "backup.tar"
    with Workspace(home).writing("a night"):
        refused = backup(home, archive)
    assert refused.returncode == 1 and "(a night)" in refused.stderr.replace('"what": "a night"', "(a night)")
    Workspace(home / "smoke")
    (home / "prefect").mkdir()
    databases = (home / "mlflow.db", home / "prefect" / "prefect.db")
    with contextlib.ExitStack() as stack:
        for file in databases:  # as their servers hold them open: rows in the log, more under way
            connection = stack.enter_context(contextlib.closing(sqlite3.connect(file)))
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("CREATE TABLE runs AS SELECT 1 AS id")
            connection.commit()
            connection.execute("INSERT INTO runs VALUES (2)")
        done = backup(home, archive)
    assert done.returncode == 0, done.stderr
    with Workspace(home).writing("the next night"):
        pass
    restored = tmp_path / "restored"
    restored.mkdir()
    subprocess.run(["tar", "-xf", str(archive), "-C", str(restored)], check=True)
    assert {file.name for file in restored.iterdir()} == {"home.json", "mlflow.db", "prefect"}
    for file in databases:
        with contextlib.closing(sqlite3.connect(restored / file.relative_to(home))) as connection:
            assert connection.execute("SELECT id FROM runs").fetchall() == [(1,)]
    assert [file.name for file in tmp_path.glob("backup.tar*")] == ["backup.tar"]
    assert backup(tmp_path, archive).returncode == 2 and archive.exists()


@needs_tools
@pytest.mark.slow
def test_a_restored_home_answers_and_goes_on(night: tuple[Path, str], tmp_path: Path) -> None:
    archive, home = tmp_path / "backup.tar", tmp_path / "restored"
    assert backup(night[0], archive).returncode == 0
    home.mkdir()
    subprocess.run(["tar", "-xf", str(archive), "-C", str(home)], check=True)
    question = ("similar", "Evening News", "--json", "--home")
    assert answer(*question, home) == answer(*question, night[0])
    done = guidespace("nightly", "--feed", SAMPLE, "--home", home, "--preset", "smoke")
    assert done.returncode == 0, done.stdout + done.stderr
    assert answer("scores", "--home", home, "--json")["champion"], done.stdout


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    for unit in UNITS.iterdir():
        text = unit.read_text(encoding="utf-8").replace("User=guidespace", "User=root")
        command = ROOT / "deployments" / "backup.sh"  # stands for one that is installed there
        (tmp_path / unit.name).write_text(
            text.replace("/opt/guidespace/.venv/bin/guidespace", str(command)).replace(
                "/opt/guidespace", str(ROOT)
            ),
            encoding="utf-8",
        )
    files = sorted(map(str, tmp_path.iterdir()))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *files], capture_output=True, encoding="utf-8"
    )
    assert (done.returncode, done.stderr) == (0, "") and len(files) == 3
