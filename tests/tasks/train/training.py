"""Runs trainings for tests."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from storage.formats.corpus import open_corpus
from tasks.encoder.bag import LAYER
from tasks.encoder.bags import Bagger, encode_bags
from tasks.optimizers import Adam
from tasks.optimizers.parameter_groups import ParameterGroup
from tasks.train.checkpoint import Checkpointer
from tasks.train.loop import Training
from tasks.train.objectives import Label
from tasks.train.settings import TrainSettings
from tests.worlds import TRAINING

GROUPS = (ParameterGroup(pattern=LAYER, optimizer=Adam(learning_rate=0.01)),)
COMPILED = replace(
    TRAINING, objective=Label(batch_size=8), groups=GROUPS, epochs=2, threads=1, backend="compiled"
)


def tensors(training: Training) -> dict[str, torch.Tensor]:
    return {name: torch.cat(list(section.pieces())) for name, section in training.trainer.sections().items()}


def run(training: Training) -> Training:
    for _ in training.run():
        pass
    return training


class Killed(Exception):
    """Exception that stands for a kill: nothing is written after it."""


def stop_after(training: Training, steps: int, folder: Path) -> None:
    """Runs a number of steps of a training that writes a checkpoint after each."""
    step = training.trainer.step

    def counted(*arguments):
        if training.trainer.steps == steps:
            raise Killed
        return step(*arguments)

    training.trainer.step = counted
    with pytest.raises(Killed):
        list(training.run(Checkpointer(folder)))


def resumed(corpus: Path, settings: TrainSettings, folder: Path) -> Training:
    training = Training(corpus, settings)
    training.resume(Checkpointer(folder))
    return training


def assert_same(first: Training, second: Training) -> None:
    assert first.position == second.position and first.trainer.steps == second.trainer.steps
    others = tensors(second)
    for name, tensor in tensors(first).items():
        assert torch.equal(tensor, others[name]), name


def trained(corpus: Path, **changes) -> Training:
    return run(Training(corpus, replace(TRAINING, **changes)))


def same_bits(first: Training, second: Training) -> bool:
    ours, others = tensors(first), tensors(second)
    return (
        set(ours) == set(others)
        and all(torch.equal(tensor, others[name]) for name, tensor in ours.items())
        and first.trainer.steps == second.trainer.steps
    )


def title_vectors(corpus: Path, training: Training) -> np.ndarray:
    opened = open_corpus(corpus)
    bags = Bagger(opened.kinds).bags(opened.tokens)
    return encode_bags(training.settings.encoder, training.table.rows[bags.ids], bags).numpy()


def without_sentences(corpus: Path, folder: Path) -> Path:
    shutil.copytree(corpus, folder)
    for name in ("sentences", "descriptions"):
        (folder / f"{name}.npy").unlink(missing_ok=True)
    return folder
