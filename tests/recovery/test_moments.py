"""A process killed at moments that a random one seldom hits: between the publishing of a stage's folder and
Prefect's note of its result, and between the begin of a flow run and that of its MLflow run."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowFilter, FlowFilterName

from flows.run_context import open_night
from flows.settings import SMOKE
from storage.artifacts import Corpus, Guide, Vocabulary
from storage.home.workspace import Workspace
from tasks.tokenize.settings import TokenizeSettings
from tasks.tokenize.task import tokenize
from tests.flows.command import ROOT
from tests.recovery.nights import environment

SETTINGS = TokenizeSettings(weight_exponent=0.4)  # not those of the toy world: nothing is done yet
KILLED_WHEN_PUBLISHED = """
import os, signal, sys
from contextlib import contextmanager
from storage.stages import Stage
from tests.recovery.test_moments import count, newest_guide

published = Stage.publish

@contextmanager
def publish_and_die(stage, *arguments):
    with published(stage, *arguments) as draft:
        yield draft
    os.kill(os.getpid(), signal.SIGKILL)

Stage.publish = publish_and_die
count(sys.argv[1], newest_guide(sys.argv[1]))
"""


KILLED_BEFORE_MLFLOW = """
import os, signal, sys
from storage.tracking import Tracking
from tests.recovery.test_moments import hold

Tracking.start_run = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
hold(sys.argv[1])
"""


@flow
def count(home: str, guide: Guide) -> Vocabulary:
    return tokenize(home, guide, SETTINGS)


@flow
def hold(home: str) -> None:
    with open_night(home, [], SMOKE):
        pass


def newest_guide(home: str) -> Guide:
    (folder,) = (Path(home) / "artifacts" / "guide").iterdir()
    guide = Workspace(home).read(Guide, folder.name)
    assert guide
    return guide


def run_and_die(code: str, home: Path, api: str) -> None:
    command, own = [sys.executable, "-c", code, str(home)], environment(PREFECT_API_URL=api)
    killed = subprocess.run(command, cwd=ROOT, env=own, capture_output=True, encoding="utf-8")
    assert killed.returncode == -signal.SIGKILL, killed.stderr


@pytest.mark.slow
def test_the_next_run_reuses_the_folder_of_a_killed_one(
    toy: tuple[Path, Guide, Vocabulary, Corpus], tmp_path: Path, prefect_api: str
) -> None:
    home = tmp_path / "home"
    (home / "artifacts").mkdir(parents=True)
    for kept in ("home.json", "artifacts/guide"):
        (home / kept).symlink_to(toy[0] / kept)
    run_and_die(KILLED_WHEN_PUBLISHED, home, prefect_api)
    (file,) = home.glob("artifacts/vocabulary/*/artifact.json")
    made = file.stat().st_ino
    count(str(home), newest_guide(str(home)))
    with get_client(sync_client=True) as client:
        states = [
            run.state_name
            for run in client.read_task_runs(flow_filter=FlowFilter(name=FlowFilterName(any_=["count"])))
        ]
    assert sorted(states, key=str) == ["Cached", "Running"]
    assert file.stat().st_ino == made


@pytest.mark.slow
def test_the_next_run_marks_one_crashed_that_had_no_mlflow_run(tmp_path: Path, prefect_api: str) -> None:
    home = tmp_path / "home"
    run_and_die(KILLED_BEFORE_MLFLOW, home, prefect_api)

    hold(str(home))
    with get_client(sync_client=True) as client:
        states = [
            run.state_name for run in client.read_flow_runs() if run.parameters.get("home") == str(home)
        ]
    assert sorted(states, key=str) == ["Completed", "Crashed"]
