"""The command after a crash, on unchanged input, on damaged files, on a home in use, and on feeds that are
none."""

import contextlib
import gzip
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from storage.home.workspace import Workspace
from storage.stages import ROOT
from tests.flows.command import QUICK_NIGHT

FEED = ROOT / "sample" / "guide.xml.gz"
EPOCHS = 30
SECONDS = 280.0  # for a night, beside other work
SETTINGS = ["--preset", "smoke", "--set", *QUICK_NIGHT, f"train.epochs={EPOCHS}"]
STAGES = [
    "augment",
    "baselines",
    "cluster",
    "draw",
    "embed",
    "evaluate",
    "layout",
    "linear",
    "neighbours",
    "pack",
    "preprocess",
    "tokenize",
    "train",
]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@dataclass(frozen=True)
class Ended:
    """A command that has ended (or was killed: code is minus the signal), its process group and what it
    said."""

    group: int
    code: int
    output: str
    errors: str

    def __post_init__(self) -> None:
        assert "Traceback" not in self.errors, self.errors

    @property
    def made(self) -> list[str]:
        """Names of the stages that ran, sorted, because some run concurrently."""
        return sorted(re.findall(r"s  (\w+) +done\n", self.output))

    @property
    def kept(self) -> list[str]:
        """Stages whose results came from the cache."""
        return sorted(re.findall(r"s  (\w+) +unchanged, reused\n", self.output))


def nightly(home: Path, *arguments: str, feed: Path = FEED, kill_at: str = "", **variables: str) -> Ended:
    """``python -m flows nightly`` in a process of its own, killed by SIGKILL once its log holds
    ``kill_at``."""
    command = [
        sys.executable,
        "-m",
        "flows",
        "nightly",
        "--feed",
        str(feed),
        "--home",
        str(home),
        *(arguments or SETTINGS),
    ]
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PREFECT_", "MLFLOW_", "GUIDESPACE_"))
    }
    environment |= {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", **variables}
    output, errors = home.parent / "output.txt", home.parent / "errors.txt"
    with open(output, "w", encoding="utf-8") as out, open(errors, "w", encoding="utf-8") as err:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
    deadline = time.monotonic() + SECONDS
    while process.poll() is None:
        if time.monotonic() > deadline or (kill_at and kill_at in output.read_text(encoding="utf-8")):
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        time.sleep(0.05)
    if not kill_at:
        sweep(process.pid)
    return Ended(
        process.pid,
        process.returncode,
        output.read_text(encoding="utf-8"),
        errors.read_text(encoding="utf-8"),
    )


def sweep(group: int) -> None:
    """Ends the processes that a command has left running."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def status(home: Path) -> dict:
    return json.loads((home / "status.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Ended]]:
    """Home whose run was killed while it trained, and the result of the same command run again."""
    home = tmp_path_factory.mktemp("crashed") / "home"
    killed = nightly(home, kill_at="epoch 5 of")
    try:
        assert killed.code == -signal.SIGKILL, killed
        assert len(list(home.glob("artifacts/checkpoint/*.partial"))) == 1
        assert not list(home.glob("artifacts/checkpoint/*/artifact.json"))
        yield home, nightly(home)
    finally:
        sweep(killed.group)


def test_a_killed_run_resumes(crashed: tuple[Path, Ended]) -> None:
    home, again = crashed
    assert again.code == 0, again
    assert "guide.xml.gz: unchanged" in again.output
    assert [
        (feed["seen"], feed["stored"] + feed["duplicates"] + feed["rejected"])
        for feed in status(home)["feeds"]
    ] == [(10_031, 10_031)]
    assert again.kept[-2:] == ["preprocess", "tokenize"]
    made = {"ingest", "check", "train", "augment", "embed", "neighbours", "layout", "cluster", "evaluate"}
    made |= {"draw", "pack"}
    parallel = {"baselines", "linear"}  # they may have ended before the run was killed
    assert {*again.made} | parallel == made | parallel | {"register", "promote", "report"}
    assert {*again.made} | {*again.kept} == {*STAGES, "ingest", "check", "register", "promote", "report"}
    resumed = re.search(rf"resuming after epoch (\d+) of {EPOCHS}", again.output)
    assert resumed and 4 <= int(resumed[1]) < EPOCHS
    assert f"epoch {resumed[1]} of" not in again.output.partition("going on")[2].partition("\n")[2]
    assert f"epoch {EPOCHS} of {EPOCHS}" in again.output
    assert not list(home.glob("artifacts/*/*.partial")) and not list(home.glob("artifacts/*/*.tmp"))


def written(home: Path) -> dict[Path, tuple[int, int]]:
    """Returns every published file with its inode and modification time."""
    files = (path for path in home.glob("artifacts/*/*/*") if path.is_file())
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in files}


def test_an_unchanged_run_repeats_nothing(crashed: tuple[Path, Ended]) -> None:
    home = crashed[0]
    before = written(home)
    again = nightly(home)
    assert again.code == 0, again
    assert again.kept == STAGES
    assert again.made == ["check", "ingest", "promote", "register", "report"]
    assert written(home) == before
    assert "the challenger is the champion" in again.output


def test_a_damaged_artifact_is_computed_again(crashed: tuple[Path, Ended]) -> None:
    home = crashed[0]
    (vectors,) = home.glob("artifacts/vectors/*/vectors.npy")
    before = vectors.read_bytes()
    with open(vectors, "r+b") as handle:
        handle.truncate(1000)
    again = nightly(home)
    assert again.code == 0, again
    # the same vectors: nothing after them is made again
    assert again.made == ["check", "embed", "ingest", "promote", "register", "report"]
    assert again.kept == [stage for stage in STAGES if stage != "embed"]
    assert vectors.read_bytes() == before


def test_a_home_in_use_is_not_changed(crashed: tuple[Path, Ended], tmp_path: Path) -> None:
    home = crashed[0]
    with Workspace(home).writing("a run that takes long"):
        refused = nightly(home, PREFECT_HOME=str(tmp_path / "prefect"))
    assert refused.code == 2 and not (tmp_path / "prefect").exists()  # Prefect is not started for it
    (line,) = refused.errors.strip().splitlines()
    assert str(home) in line and f"process {os.getpid()} on " in line and "a run that takes long" in line


@pytest.fixture
def untouched(crashed: tuple[Path, Ended]) -> Iterator[Path]:
    """Home whose catalogue and feeds must stay unchanged during the test."""
    home = crashed[0]
    before = (
        hashlib.sha256((home / "catalogue.duckdb").read_bytes()).hexdigest(),
        status(home),
        (home / "latest.json").read_text(encoding="utf-8"),
    )
    yield home
    assert (
        hashlib.sha256((home / "catalogue.duckdb").read_bytes()).hexdigest(),
        status(home),
        (home / "latest.json").read_text(encoding="utf-8"),
    ) == before


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "no such file"),
        (gzip.compress(b"")[:-8], "guide.xml"),
    ],
    ids=["missing", "broken gzip"],
)
def test_an_invalid_feed_gives_one_line(
    untouched: Path, tmp_path: Path, content: bytes | None, expected: str
) -> None:
    feed = tmp_path / "guide.xml"
    if content is not None:
        feed.write_bytes(content)
    refused = nightly(untouched, feed=feed, PREFECT_HOME=str(tmp_path / "prefect"))
    assert refused.code == 2, refused
    (line,) = refused.errors.strip().splitlines()
    assert line.startswith("guidespace: ") and str(feed) in line and expected in line
    assert not (tmp_path / "prefect").exists()  # Prefect is not started for it
