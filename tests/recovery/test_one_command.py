"""``guidespace nightly`` killed, or its disk full, at seeded moments: the next one completes, and what it
publishes is what an undisturbed one does. And beside people and programs that read its home, or hold its
catalogue."""

import errno
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

from flows.cli import exits
from storage.catalogue.connection import CATALOGUE_FILE
from storage.tracking import Registry
from tests.contents import catalogue_contents, night_contents
from tests.flows.command import ROOT, guidespace
from tests.recovery.nights import (
    check_no_leftovers,
    environment,
    finished,
    interrupted_stage,
    moment,
    night,
)

pytestmark = pytest.mark.timeout(1200)

PUBLISHED = {  # stages whose result comes from the artifact that they published, with its kind
    "tokenize": "vocabulary",
    "preprocess": "corpus",
    "train": "checkpoint",
    "cluster": "clustering",
}


# Reads all that is published, again and again, until the file "ended" is there; prints how often.
READER = """
import json, sys, time
from pathlib import Path
import numpy as np, pyarrow.parquet as pq
home, times = Path(sys.argv[1]), 0
while times == 0 or not (home / "ended").exists():
    latest = json.loads((home / "latest.json").read_text("utf-8"))
    titles = pq.read_table(home / latest["model"] / "titles.parquet").num_rows
    assert titles == len(np.load(home / latest["model"] / "similarity.npy", mmap_mode="r"))
    for file in (home / "artifacts" / "guide").glob("*/programmes.parquet"):
        assert ".tmp" in str(file) or pq.read_table(file).num_rows == 9936
    assert json.loads((home / "status.json").read_text("utf-8"))["programmes"] == 9936
    times += 1
    time.sleep(0.1)
print(times)
"""


@dataclass(frozen=True)
class Undisturbed:
    """Home of one night, and what that night wrote and printed."""

    home: Path
    contents: dict[str, Any]
    output: str


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    home = tmp_path_factory.mktemp("undisturbed") / "home"
    done = night(home)
    assert done.code == 0, done
    return Undisturbed(home, night_contents(home), done.output)


def running_in_prefect(home: Path) -> list[str]:
    """Returns the flow runs that are Running in Prefect's database in the home."""
    with closing(sqlite3.connect(home / "prefect" / "prefect.db")) as connection:
        return [
            name for (name,) in connection.execute("SELECT name FROM flow_run WHERE state_type = 'RUNNING'")
        ]


def check_recovery(home: Path, undisturbed: Undisturbed) -> None:
    """Runs the same command again: it reuses the stages that had finished, and leaves what an undisturbed one
    does."""
    before = finished(home)
    again = night(home)
    assert again.code == 0, again
    kept = set(re.findall(r"s  (\w+) +unchanged", again.output))
    made = {Path(folder).parts[1] for folder in before}
    assert {stage for stage, kind in PUBLISHED.items() if kind in made} <= kept, again
    assert night_contents(home) == undisturbed.contents
    check_no_leftovers(home, before)
    assert running_in_prefect(home) == []


def kill(home: Path, seed: int, undisturbed: Undisturbed) -> None:
    killed = night(
        home,
        lambda process: os.kill(process.pid, signal.SIGKILL),
        moment(seed, undisturbed.output, "promote"),
    )
    assert killed.code == -signal.SIGKILL, killed
    stage = interrupted_stage(killed.output, undisturbed.output)
    print(f"kill {seed}: {stage} interrupted after {killed.output.splitlines()[-1]!r}")
    if "MLflow:" in killed.output:
        assert len(running_in_prefect(home)) == 1
    check_recovery(home, undisturbed)


@pytest.mark.slow
def test_a_run_that_could_not_report_its_end(undisturbed: Undisturbed, tmp_path: Path) -> None:
    """As where the disk was full at the end: its lock was given back, and Prefect has it as Running."""
    home = tmp_path / "home"
    shutil.copytree(undisturbed.home, home)
    with closing(sqlite3.connect(home / "prefect" / "prefect.db")) as connection, connection:
        at = json.dumps(str(undisturbed.home)), json.dumps(str(home))
        connection.execute("UPDATE flow_run SET parameters = replace(parameters, ?, ?)", at)
        for table, name in (("flow_run", "state_"), ("flow_run_state", "")):
            connection.execute(f"UPDATE {table} SET {name}type = 'RUNNING', {name}name = 'Running'")
    assert len(running_in_prefect(home)) == 1
    again = night(home)
    assert again.code == 0, again
    assert running_in_prefect(home) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=110m", "tmpfs", str(place)]
    mounted = subprocess.run(command, capture_output=True, encoding="utf-8")
    if mounted.returncode:
        pytest.skip(f"mounting a small tmpfs is not permitted here: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@contextmanager
def full(file: Path) -> Iterator[Callable[[object], None]]:
    """Gives what fills the disk of a file, and keeps it full until the block ends: also of what is freed."""
    over = threading.Event()

    def fill() -> None:
        with open(file, "wb", buffering=0) as ballast:
            size = 1 << 20
            while not over.is_set():
                try:
                    ballast.write(bytes(size))
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    if size == 1:
                        over.wait(0.02)
                    size = size >> 1 or 1 << 16

    filler = threading.Thread(target=fill)
    try:
        yield lambda _: filler.start()
    finally:
        over.set()
        if filler.ident:
            filler.join()
        file.unlink(missing_ok=True)


def fill_the_disk(disk: Path, seed: int, undisturbed: Undisturbed) -> None:
    home = disk / "home"
    with full(disk / "ballast") as fill:
        failed = night(home, fill, moment(seed, undisturbed.output, "draw"))
        assert os.statvfs(disk).f_bavail == 0
    stage = interrupted_stage(failed.output, undisturbed.output)
    print(f"full disk {seed}: {stage} interrupted; {failed.errors.splitlines()[-1:]}")
    assert failed.code == exits.UNAVAILABLE, failed
    messages = [line for line in failed.errors.splitlines() if line.startswith("guidespace: ")]
    assert len(messages) == 1 and "no space left on the disk" in messages[0], failed.errors
    assert "Free some space and run the same command again" in messages[0]
    assert not (home / "latest.json").exists()
    check_recovery(home, undisturbed)


@pytest.mark.slow
def test_a_kill_and_the_next_night(tmp_path: Path, undisturbed: Undisturbed) -> None:
    kill(tmp_path / "one" / "home", 16, undisturbed)


@pytest.mark.slow
def test_a_full_disk_and_the_next_night(small_disk: Path, undisturbed: Undisturbed) -> None:
    fill_the_disk(small_disk, 11, undisturbed)


@pytest.mark.slow
def test_a_night_that_fails_to_draw_does_not_change_the_champion(
    tmp_path: Path, undisturbed: Undisturbed
) -> None:
    home = shutil.copytree(undisturbed.home, tmp_path / "home")
    pages, latest = home / "artifacts" / "page", (home / "latest.json").read_text(encoding="utf-8")
    pages.rename(home / "pages")
    pages.write_text("a file where the folder of pages belongs", encoding="utf-8")
    changes = ["train.epochs=3", "publish.promote=always"]
    failed = night(home, changes=changes)
    assert failed.code == exits.FAILED and "artifacts/page" in failed.errors, failed
    assert Registry(home).version_of(newest(home, "model")), failed
    champion = Registry(home).champion()
    assert (
        champion and champion.version == "1" and (home / "latest.json").read_text(encoding="utf-8") == latest
    )
    pages.unlink()
    (home / "pages").rename(pages)
    done = night(home, changes=changes)
    assert done.code == 0 and re.search(r"draw +done", done.output), done
    champion = Registry(home).champion()
    assert champion and (champion.version, champion.digest) == ("2", night_contents(home)["model"])


def newest(home: Path, kind: str) -> str:
    """Returns the digest of the last published artifact of a kind."""
    files = sorted(home.glob(f"artifacts/{kind}/*/artifact.json"), key=lambda file: file.stat().st_mtime_ns)
    return json.loads(files[-1].read_text(encoding="utf-8"))["digest"]


@pytest.mark.slow
def test_a_night_with_an_open_catalogue_and_a_night_with_ten_readers(
    undisturbed: Undisturbed,
) -> None:
    home = undisturbed.home
    contents, latest = catalogue_contents(home), (home / "latest.json").read_text(encoding="utf-8")
    with duckdb.connect(str(home / CATALOGUE_FILE)) as person:
        person.execute("CREATE TABLE remarks AS SELECT 'mine' AS remark")
        held = night(home, changes=["train.epochs=3"])
        assert held.code == exits.REFUSED, held
        (line,) = held.errors.strip().splitlines()
        assert re.search(
            rf"{CATALOGUE_FILE} is held by process {os.getpid()} \(.+\)\. Wait for it to end", line
        )
        assert (home / "latest.json").read_text(encoding="utf-8") == latest
        beside = guidespace("sql", "SELECT count(*) AS n FROM programmes", "--home", home, "--json")
        assert json.loads(beside.stdout) == [{"n": 9936}], beside.stderr
    check_readers_during_a_night(home)
    assert catalogue_contents(home) == contents
    with duckdb.connect(str(home / CATALOGUE_FILE), read_only=True) as person:
        assert person.execute("SELECT remark FROM remarks").fetchall() == [("mine",)]


def check_readers_during_a_night(home: Path) -> None:
    command = [sys.executable, "-m", "flows"]
    asked = [
        [*command, "similar", "Harbour News", "--home", str(home), "--json"],
        [*command, "sql", "SELECT count(*) AS titles FROM titles", "--home", str(home), "--json"],
    ] * 2 + [[sys.executable, "-c", READER, str(home)]] * 6
    readers: list[subprocess.Popen[str]] = []

    def read(_: object) -> None:
        readers.extend(
            subprocess.Popen(
                each,
                cwd=ROOT,
                env=environment(),
                encoding="utf-8",
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for each in asked
        )

    try:
        done = night(home, read, 3, ["train.epochs=3"])
        (home / "ended").touch()
        answers = [(*reader.communicate(timeout=60), reader.returncode) for reader in readers]
    finally:
        for reader in readers:
            reader.kill()
            reader.wait()
    assert done.code == 0, done
    assert len(answers) == 10 and all(code == 0 and not errors for _, errors, code in answers), answers
    assert all(int(output) > 1 for output, *_ in answers[4:])
    assert all(json.loads(output) for output, *_ in answers[:4])


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_kills(tmp_path: Path, undisturbed: Undisturbed, seed: int) -> None:
    kill(tmp_path / "one" / "home", seed, undisturbed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_full_disks(small_disk: Path, undisturbed: Undisturbed, seed: int) -> None:
    fill_the_disk(small_disk, seed, undisturbed)
