"""Checkpoints: rows, rule state and parameters, with the place of the next batch; the last one and the best one.

A file is written beside its place and renamed, so a kill leaves the one before. The best is a second name (a hard link)
of what was the last when it was best: keeping it costs no copy and no memory.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import torch
from safetensors import safe_open
from torch import Tensor

from storage.tables.streaming import write_safetensors
from tasks.train.step import Learner

# Settings that a run may go on with under other values: how long, and where and how fast it computes.
_FREE = ("epochs", "patience", "save_seconds", "table", "device", "threads", "workers", "precision")


@dataclass
class Position:
    """Where a run is.

    Attributes:
        epoch: Epochs finished.
        batch: Batches done of the epoch under way.
        loss: Sum of their losses.
        history: One entry a finished epoch: loss, learning_rate and what was read of the vectors.
        best: The epoch, from 1, whose vectors are worth most so far; 0 before the first.
    """

    epoch: int = 0
    batch: int = 0
    loss: float = 0.0
    history: list[dict[str, float]] = field(default_factory=list)
    best: int = 0


def write_checkpoint(file: Path, learner: Learner, position: Position) -> None:
    """Writes everything into one safetensors file, in one rename."""
    about = {"settings": dataclasses.asdict(learner.settings), "position": dataclasses.asdict(position), "steps": learner.steps}
    write_safetensors(file, learner.parts(), {"about": json.dumps(about)})


def read_checkpoint(file: Path, learner: Learner) -> Position:
    """Puts what ``write_checkpoint`` wrote into a learner; where the run was.

    Raises:
        ValueError: It was made with other settings, or for another vocabulary.
    """
    with safe_open(file, framework="pt", device="cpu") as opened:
        about = json.loads(opened.metadata()["about"])
        found = {name: tuple(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118  (no mapping: safe_open has keys() alone)
        expected = {name: part.shape for name, part in learner.parts().items()}
        now = json.loads(json.dumps(dataclasses.asdict(learner.settings)))
        different = differences(about["settings"], now)
        if bool(about["settings"]["patience"]) != bool(now["patience"]):  # titles are set aside or not: another training set, and other scores
            different = ", ".join(filter(None, [different, f"train.patience was {about['settings']['patience']}, is {now['patience']}"]))
        if found != expected or different:
            why = f"holds {found}, this run needs {expected}" if found != expected else f"was made with other settings: {different}"
            raise ValueError(f"{file} {why}. It is of other settings or of another corpus. Name another place, or delete it")
        learner.restore(opened.get_slice)
    learner.steps = about["steps"]
    return Position(**about["position"])


def differences(before: Mapping[str, object], now: Mapping[str, object]) -> str:
    """Settings that rows cannot be trained on under, in words; "" where there are none. Both as JSON gives them."""
    return ", ".join(f"train.{name} was {before.get(name)}, is {value}" for name, value in now.items() if name not in _FREE and before.get(name) != value)


class Kept(Protocol):
    """Where a run keeps what it must not lose."""

    def save(self, learner: Learner, position: Position) -> None:
        """Keeps what a run goes on from."""
        ...

    def mark_best(self, learner: Learner) -> None:
        """What was saved last is the best so far."""
        ...

    def restore_best(self, learner: Learner) -> None:
        """Puts the best back into the learner."""
        ...


class KeptInMemory:
    """For a run that nobody means to interrupt: a copy of the best, nothing on disk."""

    def __init__(self) -> None:
        self._best: dict[str, Tensor] = {}
        self._steps = 0

    def save(self, learner: Learner, position: Position) -> None:
        """Nothing: there is no going on."""

    def mark_best(self, learner: Learner) -> None:
        """Copies everything."""
        for name, part in learner.parts().items():
            copy = self._best.setdefault(name, torch.empty(part.shape, dtype=part.dtype))  # memory that was used before is much faster to write
            start = 0
            for piece in part.pieces():
                copy[start : start + len(piece)] = piece
                start += len(piece)
        self._steps = learner.steps

    def restore_best(self, learner: Learner) -> None:
        """Puts the copy back."""
        learner.restore(self._best.__getitem__)
        learner.steps = self._steps


class KeptOnDisk:
    """In a folder: ``last.safetensors`` and ``best.safetensors``.

    Args:
        folder: Made if missing.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.last, self.best = folder / "last.safetensors", folder / "best.safetensors"

    def resume(self, learner: Learner) -> Position:
        """Where the run that wrote here was; a new run's start where none did.

        Raises:
            ValueError: What is there is of other settings, or for another vocabulary.
        """
        if not self.last.exists():
            return Position()
        position = read_checkpoint(self.last, learner)
        if position.best == position.epoch and not position.batch:
            self.mark_best(learner)  # a kill between the two names
        return position

    def save(self, learner: Learner, position: Position) -> None:
        """Replaces the last checkpoint."""
        write_checkpoint(self.last, learner, position)

    def mark_best(self, learner: Learner) -> None:
        """Gives the last checkpoint its second name."""
        temporary = self.best.with_name(self.best.name + ".tmp")
        temporary.unlink(missing_ok=True)
        try:
            os.link(self.last, temporary)
        except OSError:  # a file system without hard links
            shutil.copyfile(self.last, temporary)
        os.replace(temporary, self.best)

    def restore_best(self, learner: Learner) -> None:
        """Reads the best checkpoint."""
        read_checkpoint(self.best, learner)
