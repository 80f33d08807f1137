"""Atomic replacement of files, folders and databases: full disk, kill, concurrent readers."""

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from storage import atomic
from storage.atomic import copy_if_missing, replaced_database, replaced_file, replaced_folder
from storage.catalogue.connection import copy_database


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Limits the size of files, so that writes fail as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def connect(file: Path) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(str(file))


def count(file: Path) -> int:
    with connect(file) as connection:
        return connection.execute("SELECT count(*) FROM numbers").fetchall()[0][0]


def leave_a_log(file: Path, rows: int) -> None:
    """Kills a process after a commit, so that only the write-ahead log contains the rows."""
    code = "import duckdb, os, signal, sys\nconnection = duckdb.connect(sys.argv[1])\n"
    code += f"connection.execute('CREATE TABLE numbers AS SELECT * FROM range({rows})')\n"
    code += "os.kill(os.getpid(), signal.SIGKILL)"
    killed = subprocess.run([sys.executable, "-c", code, str(file)])
    assert killed.returncode == -signal.SIGKILL and file.with_name(f"{file.name}.wal").stat().st_size


def test_a_copy_that_fails_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty.db").write_bytes(bytes(200_000))
    with largest_file(100_000), pytest.raises(OSError, match="File too large"):
        copy_if_missing(tmp_path / "empty.db", tmp_path / "prefect.db")
    assert names(tmp_path) == ["empty.db"]
    copy_if_missing(tmp_path / "empty.db", tmp_path / "prefect.db")
    assert (tmp_path / "prefect.db").read_bytes() == bytes(200_000)


@pytest.mark.parametrize("links", [True, False])
def test_a_copy_leaves_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    if not links:  # as on exFAT
        monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(PermissionError))
    (tmp_path / "empty.db").write_text("empty", encoding="utf-8")
    (tmp_path / "mlflow.db").write_text("of another process", encoding="utf-8")
    copy_if_missing(tmp_path / "empty.db", tmp_path / "mlflow.db")
    copy_if_missing(tmp_path / "empty.db", tmp_path / "new.db")
    assert (tmp_path / "mlflow.db").read_text(encoding="utf-8") == "of another process"
    assert (tmp_path / "new.db").read_text(encoding="utf-8") == "empty"
    assert names(tmp_path) == ["empty.db", "mlflow.db", "new.db"]


def test_a_file_keeps_its_permissions_and_a_failed_write_keeps_the_file(small_disk: Path) -> None:
    file = small_disk / "corrections.json"
    file.write_text("before", encoding="utf-8")
    file.chmod(0o640)
    with pytest.raises(OSError, match="No space left"), replaced_file(file) as new:
        new.write_bytes(bytes(3_000_000))
    assert file.read_text(encoding="utf-8") == "before" and names(small_disk) == [file.name]
    with replaced_file(file) as new:
        new.write_text("after", encoding="utf-8")
    assert file.read_text(encoding="utf-8") == "after" and file.stat().st_mode & 0o777 == 0o640


def test_content_is_synced_before_the_rename_and_the_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, str]] = []

    def record(function, name):
        def recorded(path, *rest):
            calls.append((name, Path(path).name))
            return function(path, *rest)

        return recorded

    for module, name in ((atomic, "sync"), (os, "replace"), (os, "rename"), (atomic, "_swap_names")):
        monkeypatch.setattr(module, name, record(getattr(module, name), name))
    suffix, home = f".{os.getpid()}-{threading.get_ident()}.tmp", tmp_path.name
    new = f"home.json{suffix}"
    with replaced_file(tmp_path / "home.json") as file:
        file.write_text("{}", encoding="utf-8")
    assert calls == [("sync", new), ("replace", new), ("sync", home)]
    calls.clear()
    (tmp_path / "patterns").mkdir()
    with replaced_folder(tmp_path / "patterns") as folder:
        (folder / "about.json").write_text("{}", encoding="utf-8")
    new = f"patterns{suffix}"
    assert calls == [("sync", "about.json"), ("sync", new), ("_swap_names", new), ("sync", home)]


def test_two_threads_replace_a_file(tmp_path: Path) -> None:
    both_have_written = threading.Barrier(2, timeout=60)

    def replace(text: str) -> None:
        with replaced_file(tmp_path / "latest.json") as file:
            file.write_text(text, encoding="utf-8")
            both_have_written.wait()
            assert file.read_text(encoding="utf-8") == text

    with ThreadPoolExecutor(2) as executor:
        list(executor.map(replace, ("first", "second")))
    assert (tmp_path / "latest.json").read_text(encoding="utf-8") in ("first", "second")
    assert names(tmp_path) == ["latest.json"]


@pytest.mark.parametrize("exchange", [True, False])
def test_a_folder_is_replaced_or_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool
) -> None:
    if not exchange:  # as on macOS
        monkeypatch.setattr(atomic, "_swap_names", lambda *_: False)
    target = tmp_path / "patterns"
    for content in ("first", "second"):
        with replaced_folder(target) as new:
            (new / content).touch()
        assert names(target) == [content] and names(tmp_path) == ["patterns"]
    with pytest.raises(FileNotFoundError), replaced_folder(target) as new:
        (new / "third" / "file").touch()
    assert names(target) == ["second"] and names(tmp_path) == ["patterns"]


def test_a_second_rename_that_fails_brings_the_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic, "_swap_names", lambda *_: False)
    rename, target = os.rename, tmp_path / "patterns"
    (target / "before").mkdir(parents=True)

    def refuse(source, place):
        if place == target and ".before" not in source.name:
            raise OSError("no")
        rename(source, place)

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(OSError, match="no"), replaced_folder(target):
        pass
    assert names(target) == ["before"] and names(tmp_path) == ["patterns"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges two folders in one step")
def test_a_reader_never_misses_a_folder_that_is_replaced(tmp_path: Path) -> None:
    target, done, missing = tmp_path / "patterns", threading.Event(), []
    target.mkdir()

    def read() -> None:
        while not done.is_set():
            missing.extend([] if target.exists() else [1])

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(300):
        with replaced_folder(target, durable=False):
            pass
    done.set()
    reader.join()
    assert not missing


def test_a_database_whose_checkpoint_fails_is_not_replaced(tmp_path: Path) -> None:
    file = tmp_path / "likes.duckdb"
    with connect(file) as connection:
        connection.execute("CREATE TABLE numbers AS SELECT * FROM range(10)")
    before = file.read_bytes()
    with (
        largest_file(400_000),
        pytest.raises(duckdb.Error, match="File too large"),
        replaced_database(file, connect) as connection,
    ):
        connection.execute("CREATE TABLE numbers AS SELECT * FROM range(20)")
    assert file.read_bytes() == before and names(tmp_path) == [file.name]


def test_the_log_of_the_old_file_is_not_applied_to_the_new_one(tmp_path: Path) -> None:
    leave_a_log(file := tmp_path / "likes.duckdb", 10)
    with replaced_database(file, connect) as connection:
        connection.execute("CREATE TABLE numbers AS SELECT * FROM range(20)")
    assert names(tmp_path) == [file.name] and count(file) == 20


def test_an_old_file_that_cannot_be_checkpointed_stays_with_its_log(tmp_path: Path) -> None:
    leave_a_log(file := tmp_path / "likes.duckdb", 10)
    with (
        largest_file(100_000),
        pytest.raises(duckdb.Error, match="File too large"),
        replaced_database(file, connect),
    ):
        raise AssertionError("the block is not entered")
    assert names(tmp_path) == [file.name, f"{file.name}.wal"] and count(file) == 10


def test_a_copy_starts_from_all_rows_of_the_old_file(tmp_path: Path) -> None:
    leave_a_log(file := tmp_path / "catalogue.duckdb", 10)
    with replaced_database(file, connect, copy=True) as connection:
        connection.execute("INSERT INTO numbers VALUES (10)")
    assert names(tmp_path) == [file.name] and count(file) == 11


def test_a_database_is_copied_with_its_log_if_the_disk_has_space(small_disk: Path, tmp_path: Path) -> None:
    leave_a_log(file := tmp_path / "catalogue.duckdb", 1_000)
    copy_database(file, tmp_path / "copy.duckdb")
    assert count(tmp_path / "copy.duckdb") == 1_000
    assert file.with_name(f"{file.name}.wal").exists()  # a backup leaves the home as it was
    with connect(file) as connection:
        connection.execute("INSERT INTO numbers SELECT (hash(range) // 2)::BIGINT FROM range(400_000)")
    with pytest.raises(OSError, match="No space left"):
        copy_database(file, small_disk / "copy.duckdb")
    assert names(small_disk) == []
