"""The temporary Prefect server of a command and its database."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

MIGRATE = "import sys; sys.prefix = sys.argv[1]; from flows.server import migrate_prefect; migrate_prefect()"


def _migrate(prefix: Path, home: Path, *preamble: str) -> list[tuple[object, ...]]:
    """Returns schema and version of the database of a new PREFECT_HOME."""
    code = "; ".join([*preamble, MIGRATE])
    environment = {**os.environ, "PREFECT_HOME": str(home), "DO_NOT_TRACK": "1"}
    for name in (
        "PREFECT_API_URL",
        "PREFECT_API_DATABASE_CONNECTION_URL",
        "PREFECT_SERVER_DATABASE_CONNECTION_URL",
    ):
        environment.pop(name, None)
    subprocess.run([sys.executable, "-c", code, str(prefix)], env=environment, check=True)
    with closing(sqlite3.connect(home / "prefect.db")) as database:
        schema = database.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name").fetchall()
        return [*schema, *database.execute("SELECT version_num FROM alembic_version").fetchall()]


@pytest.mark.slow
def test_a_second_home_copies_the_database_that_the_first_migrated(tmp_path: Path) -> None:
    first = _migrate(tmp_path / "prefix", tmp_path / "first")
    (kept,) = (tmp_path / "prefix" / "share" / "guidespace").iterdir()
    assert kept.name.startswith("prefect-") and len(first) > 100
    never = (
        "import prefect.server.database as d; d.provide_database_interface = None"  # a migration would fail
    )
    assert _migrate(tmp_path / "prefix", tmp_path / "second", never) == first


@pytest.mark.slow
def test_an_environment_that_cannot_be_written_still_gets_a_database(tmp_path: Path) -> None:
    (tmp_path / "prefix").write_text("a file where a folder should be", encoding="utf-8")
    assert len(_migrate(tmp_path / "prefix", tmp_path / "home")) > 100


@pytest.mark.slow
def test_a_server_that_cannot_start_is_an_error(tmp_path: Path) -> None:
    """And not waited for: its socket is closed when it has ended."""
    code = "import flows.server as s; s.start_prefect('.')()"
    broken = {"PREFECT_API_DATABASE_CONNECTION_URL": "sqlite+aiosqlite:////dev/null/prefect.db"}
    own = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        "PREFECT_HOME": str(tmp_path),
    }
    own.pop("PREFECT_API_URL", None)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=own | broken,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    assert done.returncode == 1
    assert "The Prefect server ended with 1; the lines above may say why" in done.stderr


@pytest.mark.slow
def test_the_server_of_the_prefect_profile_is_used(tmp_path: Path) -> None:
    named = 'active = "here"\n[profiles.here]\nPREFECT_API_URL = "http://127.0.0.1:9/api"\n'
    (tmp_path / "profiles.toml").write_text(named, encoding="utf-8")
    code = "import flows.server as s; print(s.start_prefect('.'))"
    own = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        "PREFECT_HOME": str(tmp_path),
    }
    own.pop("PREFECT_API_URL", None)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=own, capture_output=True, encoding="utf-8"
    )
    assert done.stdout == "None\n", done.stderr
