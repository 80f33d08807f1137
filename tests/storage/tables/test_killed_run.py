"""A mapped run that was killed goes on from its checkpoint."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

ROOT = Path(__file__).parents[3]


KILLED = """
import os, signal, sys
from dataclasses import replace
from pathlib import Path
from tasks.train.checkpoint import Checkpointer
from tasks.train.loop import Training
from tasks.train.tables import MappedTable
from tests.worlds import TRAINING

corpus, out, kill_at = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
table = MappedTable(folder=str(out), cached=0.05)
training = Training(corpus, replace(TRAINING, epochs=3, patience=0, table=table))
kept = Checkpointer(out / "kept")
training.resume(kept)
step, steps = training.trainer.step, [0]

def counted(*arguments):
    steps[0] += 1
    if steps[0] == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    return step(*arguments)

training.trainer.step = counted
for _ in training.run(kept):
    pass
"""


@pytest.mark.slow
def test_a_killed_mapped_run_goes_on_with_the_same_bits(toy_corpus: Path, tmp_path: Path):
    """Killed twice in the middle of an epoch, rows in a file: the end is that of the run nobody killed, and
    no scratch file is left."""

    def run(out: Path, kill_at: int) -> int:
        out.mkdir(exist_ok=True)
        return subprocess.run(
            [sys.executable, "-c", KILLED, str(toy_corpus), str(out), str(kill_at)],
            cwd=ROOT,
            timeout=120,
            check=False,
        ).returncode

    assert run(tmp_path / "whole", -1) == 0
    assert [run(tmp_path / "killed", at) for at in (6, 4, -1)] == [-signal.SIGKILL, -signal.SIGKILL, 0]
    assert [file.name for file in (tmp_path / "killed").iterdir()] == ["kept"]
    whole, killed = (load_file(tmp_path / name / "kept" / "last.safetensors") for name in ("whole", "killed"))
    assert set(whole) == set(killed) and all(
        torch.equal(tensor, killed[name]) for name, tensor in whole.items()
    )
