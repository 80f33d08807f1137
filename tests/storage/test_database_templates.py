"""Templates of empty databases in the Python environment, which may be read-only."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from storage.database_templates import copy_template, save_template


@pytest.fixture
def database(tmp_path: Path) -> Path:
    file = tmp_path / "migrated.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE runs (id INTEGER)")
    return file


def test_a_stored_template_is_copied(database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    assert not copy_template("mlflow", tmp_path / "new.db")
    save_template("mlflow", database)
    assert copy_template("mlflow", tmp_path / "new.db")
    with closing(sqlite3.connect(tmp_path / "new.db")) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchall() == [(0,)]


def test_a_read_only_environment_stores_no_template(
    database: Path, tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite has errors of its own for a file that it cannot make, which are no OSError."""
    (small_disk / "share" / "guidespace").mkdir(parents=True)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    monkeypatch.setattr(sys, "prefix", str(small_disk))
    save_template("mlflow", database)
    assert not copy_template("mlflow", tmp_path / "new.db")


def test_a_full_disk_stores_no_template(
    database: Path, tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = small_disk / "share" / "guidespace"
    folder.mkdir(parents=True)
    with pytest.raises(OSError, match="No space left"):
        (small_disk / "full").write_bytes(bytes(2_000_000))
    monkeypatch.setattr(sys, "prefix", str(small_disk))
    save_template("mlflow", database)
    assert not copy_template("mlflow", tmp_path / "new.db") and not list(folder.iterdir())
