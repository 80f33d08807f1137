"""Backup and restore of a home, and the systemd units."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from filelock import FileLock

from deployments.backup import back_up
from storage.catalogue import likes
from storage.catalogue.connection import Catalogue
from storage.catalogue.likes import read_likes
from storage.home.workspace import HomeLocked, Workspace
from storage.stages import ROOT
from tests.flows.command import SAMPLE, answer, guidespace

SCRIPT = ROOT / "deployments" / "backup.sh"
UNITS = ROOT / "deployments" / "systemd"


def backup(home: Path, archive: Path, wait_seconds: int = 0) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "WAIT_SECONDS": f"{wait_seconds}", "PYTHON": sys.executable}
    command = [str(SCRIPT), str(home), str(archive)]
    return subprocess.run(command, env=environment, capture_output=True, encoding="utf-8")


def test_an_archive_has_every_committed_row_and_no_nested_home(tmp_path: Path) -> None:
    home, archive = tmp_path / "home", tmp_path / "backup.tar"
    with Workspace(home).writing("a night"):
        refused = backup(home, archive)
    assert refused.returncode == 1 and "(a night)" in refused.stderr.replace('"what": "a night"', "(a night)")
    Workspace(home / "smoke")
    for folder in ("prefect", "models"):  # copies of models are downloaded again
        (home / folder).mkdir()
    (home / "models" / "state.json").touch()
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
    restored = restore(archive, tmp_path / "restored")
    assert {file.name for file in restored.iterdir()} == {"home.json", "mlflow.db", "prefect"}
    for file in databases:
        with contextlib.closing(sqlite3.connect(restored / file.relative_to(home))) as connection:
            assert connection.execute("SELECT id FROM runs").fetchall() == [(1,)]
    assert [file.name for file in tmp_path.glob("backup.tar*")] == ["backup.tar"]
    assert backup(tmp_path, archive).returncode == 2 and archive.exists()


def restore(archive: Path, folder: Path) -> Path:
    folder.mkdir()
    subprocess.run(["tar", "-xf", str(archive), "-C", str(folder)], check=True)
    return folder


WRITE = """
import datetime, sqlite3, sys
import pyarrow as pa
from pathlib import Path
from storage.catalogue.likes import LIKES, add_likes
home, number = Path(sys.argv[1]), 0
connection = sqlite3.connect(home / "mlflow.db", timeout=60)
while True:  # two rows a transaction
    columns = {"episode": "", "sub_title": "", "source": "stated", "title": "A film", "value": 1.0}
    columns |= {"time": datetime.datetime(2026, 1, 1), "seen": False, "show_key": f"film {number}"}
    rows = [{"viewer": viewer, **columns} for viewer in ("Ann", "Bob")]
    add_likes(home, pa.Table.from_pylist(rows, schema=LIKES))
    with connection:
        connection.execute("INSERT INTO runs VALUES (?), (?)", [number, number])
    print(number := number + 1, flush=True)
"""


@pytest.mark.slow
def test_an_archive_made_during_writes_has_complete_transactions(tmp_path: Path) -> None:
    home = Workspace(tmp_path / "home").home
    with Catalogue.open(home), contextlib.closing(sqlite3.connect(home / "mlflow.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE runs (id INTEGER)")
    command = [sys.executable, "-c", WRITE, str(home)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout
        try:
            for name in ("first", "second"):
                written = int(writer.stdout.readline())
                done = backup(home, tmp_path / "backup.tar")
                assert done.returncode == 0, done.stderr
                restored = restore(tmp_path / "backup.tar", tmp_path / name)
                with contextlib.closing(sqlite3.connect(restored / "mlflow.db")) as connection:
                    ((runs,),) = connection.execute("SELECT count(*) FROM runs")
                opinions, _ = read_likes(restored)
                assert not len(opinions) % 2 and not runs % 2
                assert written <= len(opinions) // 2 and written <= runs // 2
                with Catalogue.open(restored):
                    pass
            assert writer.poll() is None and int(writer.stdout.readline()) > written
        finally:
            writer.kill()


def test_likes_are_copied_under_their_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Workspace(tmp_path / "home").home
    read_likes(home)
    monkeypatch.setattr(likes, "WAIT_SECONDS", 0.1)
    with FileLock(home / "likes.lock"), pytest.raises(HomeLocked, match=r"likes\.duckdb is being written"):
        back_up(home, tmp_path / "backup.tar", 0)
    back_up(home, tmp_path / "backup.tar", 0)
    assert {file.name for file in restore(tmp_path / "backup.tar", tmp_path / "restored").iterdir()} == {
        "home.json",
        "likes.duckdb",
    }


@pytest.mark.parametrize("change", ["grows", "shrinks", "is damaged"])
def test_a_file_that_changes_fails_the_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    home, archive = Workspace(tmp_path / "home").home, tmp_path / "backup.tar"
    (home / "model.bin").write_bytes(bytes(1_000_000))
    (home / "likes.duckdb" if change == "is damaged" else home / "other.bin").write_bytes(bytes(10_000))
    archive.write_text("the archive before", encoding="utf-8")
    read, size = tarfile.copyfileobj, {"grows": 1_000_001, "shrinks": 1_000}.get(change, 1_000_000)

    def change_it(source, *rest, **options):
        os.truncate(home / "model.bin", size)
        read(source, *rest, **options)

    monkeypatch.setattr(tarfile, "copyfileobj", change_it)
    with pytest.raises(Exception, match=r"model\.bin (changed|cannot be copied)|likes\.duckdb"):
        back_up(home, archive, 0)
    assert archive.read_text(encoding="utf-8") == "the archive before"
    assert {file.name for file in tmp_path.iterdir()} == {"home", "backup.tar"}


@pytest.mark.slow
def test_a_restored_home_answers_and_runs_a_night(night: tuple[Path, str], tmp_path: Path) -> None:
    archive, home = tmp_path / "backup.tar", tmp_path / "restored"
    assert backup(night[0], archive).returncode == 0
    restore(archive, home)
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
