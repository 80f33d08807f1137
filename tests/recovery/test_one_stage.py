"""A process killed between the publishing of a stage's folder and Prefect's note of its result."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL
from prefect.testing.utilities import prefect_test_harness

from storage.artifacts import Corpus, Guide, Vocabulary
from storage.workspace import Workspace
from tasks.tokenize.settings import TokenizeSettings
from tasks.tokenize.task import tokenize
from tests.flows.command import ROOT
from tests.recovery.nights import environment

SETTINGS = TokenizeSettings(weight_exponent=0.4)  # not those of the toy world: nothing is done yet
KILLED = """
import os, signal, sys
from contextlib import contextmanager
from storage.stages import Stage
from tests.recovery.test_one_stage import count, newest_guide

published = Stage.publish

@contextmanager
def publish_and_die(stage, *arguments):
    with published(stage, *arguments) as draft:
        yield draft
    os.kill(os.getpid(), signal.SIGKILL)

Stage.publish = publish_and_die
count(sys.argv[1], newest_guide(sys.argv[1]))
"""


@flow
def count(home: str, guide: Guide) -> Vocabulary:
    return tokenize(home, guide, SETTINGS)


def newest_guide(home: str) -> Guide:
    (folder,) = (Path(home) / "artifacts" / "guide").iterdir()
    guide = Workspace(home).read(Guide, folder.name)
    assert guide
    return guide


@pytest.mark.slow
def test_the_next_run_takes_the_folder_of_a_killed_one(
    toy: tuple[Path, Guide, Vocabulary, Corpus], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    os.makedirs(home / "artifacts")
    for kept in ("home.json", "artifacts/guide"):
        os.symlink(toy[0] / kept, home / kept)
    with prefect_test_harness(server_startup_timeout=120):
        own, command = environment(PREFECT_API_URL=PREFECT_API_URL.value()), [sys.executable, "-c", KILLED]
        killed = subprocess.run([*command, home], cwd=ROOT, env=own, capture_output=True, text=True)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        (file,) = home.glob("artifacts/vocabulary/*/artifact.json")
        made = file.stat().st_ino
        count(str(home), newest_guide(str(home)))
        with get_client(sync_client=True) as client:
            states = [run.state_name for run in client.read_task_runs()]
    assert sorted(states) == ["Cached", "Running"]
    assert file.stat().st_ino == made
