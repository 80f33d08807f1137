"""Homes with a smoke run of the sample guide, and a home whose model is served."""

import datetime
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from filelock import FileLock

from storage.tracking import Registry, Tracking
from tests.flows.command import SAMPLE, guidespace
from tests.flows.serve_process import AT, STAND_IN


@pytest.fixture(scope="session")
def night(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Home of a night and the output of the command; shared by all processes of pytest-xdist. Read only."""
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    home, output = folder / "night" / "home", folder / "night.txt"
    with FileLock(folder / "night.lock"):
        if not output.exists():
            done = guidespace("nightly", "--feed", SAMPLE, "--home", home, "--preset", "smoke")
            assert done.returncode == 0, done.stdout + done.stderr
            shutil.copytree(home, home.with_name("untouched"))
            output.write_text(done.stdout, encoding="utf-8")
    return home, output.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def copy_night(night: tuple[Path, str]) -> Callable[[Path], Path]:
    """Copies the home as the night left it, because other processes may have its databases open."""
    return partial(shutil.copytree, night[0].with_name("untouched"))


@pytest.fixture(scope="module")
def served_home(toy_model: Path, learnt: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the toy world's guide and two versions of its model; the first is champion."""
    home = tmp_path_factory.mktemp("served") / "home"
    shutil.copytree(learnt[0], home)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        tracking, registry = Tracking(home), Registry(home, code=STAND_IN)
        run = tracking.start_run("flow-1", "friday")
        for digest in ("a" * 64, "b" * 64):
            registry.register(run, toy_model, digest, example_title="News", lineage="salt")
        registry.promote("1", "the first", at=AT)
        registry.promote("2", "not worse", at=AT + datetime.timedelta(days=1))
        registry.promote("1", "the first again", at=AT + datetime.timedelta(days=2))
        tracking.end_run(run)
    return home


@pytest.fixture(scope="module")
def served_titles(toy_model: Path) -> list[str]:
    return pq.read_table(toy_model / "titles.parquet", columns=["title"])["title"].to_pylist()
