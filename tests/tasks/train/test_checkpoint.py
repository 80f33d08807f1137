"""A run that was stopped anywhere, even killed within an epoch, ends with the bits of the uninterrupted
one."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
import torch
from safetensors import safe_open

from storage.stages import ROOT
from tasks.optimizers import SGD, Adam, Momentum, Optimizer, RowwiseAdagrad
from tasks.optimizers.tuners import NoTuner, Tuner, YellowFin
from tasks.train.checkpoint import Checkpointer, Position, read_checkpoint, write_checkpoint
from tasks.train.loop import Training
from tests.tasks.train.training import assert_same, resumed, stop_after, tensors
from tests.worlds import TRAINING

OPTIMIZERS = [kind() for kind in get_args(Optimizer)]


@pytest.mark.parametrize(
    ("optimizer", "tuner", "steps"),
    [
        *((optimizer, NoTuner(), 7) for optimizer in OPTIMIZERS),
        (Momentum(), YellowFin(), 7),
        (RowwiseAdagrad(), NoTuner(), 10),
        (Momentum(), YellowFin(), 10),
    ],
    ids=lambda value: getattr(value, "name", "within an epoch" if value == 7 else "at its end"),
)
def test_a_resumed_run_equals_an_uninterrupted_one(
    toy_corpus: Path, tmp_path: Path, optimizer: Optimizer, tuner: Tuner, steps: int
):
    settings = replace(
        TRAINING,
        optimizer=optimizer,
        tuner=tuner,
        save_seconds=0.0,
        objective=replace(TRAINING.objective, packs=12),
    )
    whole = Training(toy_corpus, settings)
    list(whole.run())
    assert whole.trainer.steps == 20  # four epochs of five batches
    stop_after(Training(toy_corpus, settings), steps, tmp_path)
    again = resumed(toy_corpus, settings, tmp_path)
    assert (again.position.epoch, again.position.batch, again.trainer.steps) == (*divmod(steps, 5), steps)
    list(again.run(Checkpointer(tmp_path)))
    assert_same(whole, again)


def test_per_row_step_counts_survive_a_resume(toy_corpus: Path, tmp_path: Path):
    settings = replace(TRAINING, optimizer=Adam(), per_row_steps=True, save_seconds=0.0)
    whole = Training(toy_corpus, settings)
    list(whole.run())
    stop_after(Training(toy_corpus, settings), 4, tmp_path)
    again = resumed(toy_corpus, settings, tmp_path)
    list(again.run())
    assert_same(whole, again)
    steps = tensors(whole)["state.steps"]
    assert (
        steps.max() == whole.trainer.steps
        and steps.min() < whole.trainer.steps / 2
        and torch.equal(steps.squeeze(1) > 0, whole.trainer.touched)
    )
    plain = Training(toy_corpus, replace(settings, per_row_steps=False))
    list(plain.run())
    assert not torch.equal(tensors(whole)["rows"], tensors(plain)["rows"])


def test_a_kill_between_last_and_best_loses_nothing(toy_corpus: Path, tmp_path: Path):
    training = Training(toy_corpus, replace(TRAINING, epochs=1))
    list(training.run(Checkpointer(tmp_path)))
    (tmp_path / "best.safetensors").unlink()
    resumed(toy_corpus, replace(TRAINING, epochs=1), tmp_path)
    assert os.path.samefile(
        tmp_path / "best.safetensors", tmp_path / "last.safetensors"
    )  # no second copy on disk


def test_a_file_holds_rows_state_and_position_and_no_other_is_left(toy_corpus: Path, tmp_path: Path):
    training = Training(toy_corpus, replace(TRAINING, epochs=1))
    list(training.run())
    write_checkpoint(tmp_path / "run.safetensors", training.trainer, training.position)
    assert [file.name for file in tmp_path.iterdir()] == ["run.safetensors"]
    with safe_open(tmp_path / "run.safetensors", framework="pt") as opened:
        layer = {"sentence.rows", "sentence.state.first", "sentence.state.second"}  # of no columns here
        assert set(opened.keys()) == {"rows", "state.sum", "touched"} | layer
        assert json.loads(opened.metadata()["about"])["position"]["history"] == training.history
    again = Training(toy_corpus, replace(TRAINING, epochs=1))
    assert read_checkpoint(tmp_path / "run.safetensors", again.trainer) == training.position
    again.position = training.position
    assert_same(training, again)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dim": 8}, r"contains .*this run needs"),
        ({"optimizer": Adam()}, r"contains .*this run needs"),
        ({"optimizer": SGD()}, r"contains .*this run needs"),
        ({"dropout": 0.1}, r"was written with other settings: train\.dropout was 0\.4, is 0\.1"),
        ({"seed": 2}, r"was written with other settings: train\.seed was 1, is 2"),
        (
            {"patience": 2},
            r"was written with other settings: train\.patience was 0, is 2",
        ),  # titles it was trained on would be set aside
    ],
    ids=str,
)
def test_other_settings_are_refused(toy_corpus: Path, tmp_path: Path, changes: dict, message: str):
    list(Training(toy_corpus, replace(TRAINING, epochs=1)).run(Checkpointer(tmp_path)))
    other = Training(toy_corpus, replace(TRAINING, **changes))
    before = other.table.rows.clone()
    with pytest.raises(
        ValueError,
        match=rf"last\.safetensors {message}.*Choose another folder, or delete the file",
    ):
        other.resume(Checkpointer(tmp_path))
    assert other.position == Position() and torch.equal(other.table.rows, before)


@pytest.mark.slow
@pytest.mark.parametrize("table", ["resident", "mapped"])
def test_a_killed_command_resumes_with_the_same_bits(toy_corpus: Path, tmp_path: Path, table: str):
    """Killed by SIGKILL at any moment within an epoch; a mapped table leaves no scratch file."""
    settings, scratch = tmp_path / "settings.json", tmp_path / "scratch"
    scratch.mkdir()
    options = {"dim": 16, "epochs": 12, "threads": 1, "save_seconds": 0, "optimizer": {"name": "adam"}}
    options["objective"] = {"name": "leave_one_out_softmax", "pack": 4, "packs": 8}
    options["table"] = {"name": table} | ({"folder": str(scratch)} if table == "mapped" else {})
    settings.write_text(json.dumps(options), encoding="utf-8")

    def command(out: Path) -> list[str]:
        return [sys.executable, "-m", "tasks.train", str(toy_corpus), str(out), str(settings)]

    for epochs, share in (
        (2, 0.4),
        (4, 0.8),
    ):  # counted by what it has said: how long an epoch takes is the machine's affair
        process = subprocess.Popen(
            command(tmp_path / "killed"), cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8"
        )
        assert process.stdout is not None
        seen = [(process.stdout.readline(), time.monotonic())[1] for _ in range(epochs)]
        time.sleep(share * (seen[-1] - seen[-2]))
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.stdout.close()
    assert not (tmp_path / "killed" / "checkpoint.safetensors").exists()
    for out in ("killed", "whole"):
        assert (
            subprocess.run(
                command(tmp_path / out), cwd=ROOT, capture_output=True, timeout=300, check=False
            ).returncode
            == 0
        )
    assert (tmp_path / "killed" / "checkpoint.safetensors").read_bytes() == (
        tmp_path / "whole" / "checkpoint.safetensors"
    ).read_bytes()
    assert list(scratch.iterdir()) == []
