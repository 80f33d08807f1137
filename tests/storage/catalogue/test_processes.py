"""The catalogue and other processes: its lock, temporary files of killed processes, status files."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from storage.catalogue.connection import Catalogue
from storage.catalogue.feeds import publish_status, read_status
from storage.home.workspace import HomeLocked
from tests.storage.catalogue.stored import programmes, store


def test_status_is_the_documented_form_and_needs_no_lock(tmp_path: Path) -> None:
    assert read_status(tmp_path) == {
        "feeds": [],
        "channels": 0,
        "programmes": 0,
        "titles": 0,
        "categories": 0,
    }
    with Catalogue.open(tmp_path) as catalogue:
        rows = programmes(("a", 1, "x", "c"), ("a", 2, "x", "d"), ("a", 2, "x", "d"))
        store(catalogue, "s", "1", rows, rejects=2)
        publish_status(catalogue)
        code = "import sys, json; from pathlib import Path; from storage.catalogue.feeds import read_status\n"
        code += "print(json.dumps(read_status(Path(sys.argv[1]))))"
        seen = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)], capture_output=True, encoding="utf-8", check=True
        ).stdout  # while we hold the database
    counts = {"seen": 5, "stored": 2, "duplicates": 1, "rejected": 2}
    expected = {
        "feeds": [{"source": "s", **counts, "invalid_bytes": 0, "rejects": {"bad_start": 2}}],
        **{"channels": 2, "programmes": 2, "titles": 1, "categories": 2},
    }
    assert json.loads(seen) == read_status(tmp_path) == expected


def test_a_database_held_by_another_process_names_it(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from storage.catalogue.connection import Catalogue\n"
    code += "with Catalogue.open(Path(sys.argv[1])): print('open', flush=True); sys.stdin.read()"
    command, pipe = [sys.executable, "-c", code, str(tmp_path)], subprocess.PIPE
    holder = subprocess.Popen(command, stdin=pipe, stdout=pipe, encoding="utf-8")
    try:
        assert holder.stdout is not None and holder.stdin is not None
        assert holder.stdout.readline() == "open\n"
        refusal = f"catalogue.duckdb is held by process {holder.pid} "
        with pytest.raises(HomeLocked, match=refusal), Catalogue.open(tmp_path):
            pass
    finally:
        assert holder.stdin is not None
        holder.stdin.close()
        holder.wait(timeout=10)
    with Catalogue.open(tmp_path):
        pass


def test_temporary_files_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path):
        pass
    left = tmp_path / "catalogue.duckdb.tmp" / "duckdb_temp_storage_DEFAULT-0.tmp"
    left.parent.mkdir()
    left.write_bytes(b"x" * 1000)
    with Catalogue.open(tmp_path) as catalogue:
        assert not left.exists()
        catalogue.connection.execute(
            "CREATE TEMP TABLE many AS SELECT hash(range) AS key FROM range(30_000_000)"
        )  # more than it may hold in memory
        assert catalogue.connection.execute("SELECT count(*) FROM many").fetchall() == [(30_000_000,)]
        assert list(left.parent.iterdir())
    assert not left.parent.exists()


def test_readers_see_only_complete_status_files(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        publish_status(catalogue)
        done = threading.Event()
        found: list[dict[str, object]] = []

        def look() -> None:
            while not done.is_set():
                found.append(read_status(tmp_path))

        reader = threading.Thread(target=look)
        reader.start()
        for i in range(8):
            store(catalogue, "s", str(i), programmes(("a", i, "x", "c")))
            publish_status(catalogue)
        done.set()
        reader.join()
    assert [report["programmes"] for report in found] == sorted(report["programmes"] for report in found)  # type: ignore[type-var]
    assert read_status(tmp_path)["programmes"] == 8
