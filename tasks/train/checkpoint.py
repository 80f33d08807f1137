"""Writes and reads checkpoints: files with rows, optimizer state, parameters and the position of a run.

A file is written under a temporary name and renamed, so an interrupted write leaves the previous file intact.
The best checkpoint is a hard link to the checkpoint at the end of the best epoch, not a copy.
"""

import json
import os
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor

from storage.atomic import replaced_file
from storage.tables import write_safetensors
from tasks.train.step import Trainer

# Settings that may change when a run is resumed: its duration, and where and how fast it computes.
# Trainer.resume_with checks the backend.
_DURATION = ("epochs", "patience", "save_seconds")
MAY_CHANGE_ON_RESUME = (*_DURATION, "table", "device", "threads", "workers", "precision", "runner", "backend")


@dataclass
class Position:
    """How far a training run has progressed; checkpoints contain it as JSON."""

    epoch: int = 0  # finished epochs
    batch: int = 0  # finished batches of the current epoch
    loss: float = 0.0  # sum of the losses of the finished batches of the current epoch
    history: list[dict[str, float]] = field(default_factory=list)  # metrics of each finished epoch
    best: int = 0  # best epoch so far, from 1; 0 before the first epoch ends


def write_checkpoint(file: Path, trainer: Trainer, position: Position) -> None:
    """Writes the state of the trainer and the position of the run to a safetensors file, atomically."""
    metadata = {"settings": asdict(trainer.settings), "position": asdict(position)}
    metadata |= {"steps": trainer.steps, "backend": trainer.backend}
    write_safetensors(file, trainer.parts(), {"about": json.dumps(metadata)})


def read_checkpoint(file: Path, trainer: Trainer) -> Position:
    """Restores the trainer from a checkpoint file and returns the position of the run.

    Raises:
        ValueError: The checkpoint has other settings, another corpus, or a backend that is not available.
    """
    with safe_open(file, framework="pt", device="cpu") as checkpoint:
        metadata = json.loads(checkpoint.metadata()["about"])
        shapes = {name: tuple(checkpoint.get_slice(name).get_shape()) for name in checkpoint.keys()}  # noqa: SIM118  (safe_open is no mapping)
        expected_shapes = {name: part.shape for name, part in trainer.parts().items()}
        old_settings, settings = metadata["settings"], json.loads(json.dumps(asdict(trainer.settings)))
        fixed_names = (name for name in settings if name not in MAY_CHANGE_ON_RESUME)
        changes = [name for name in fixed_names if old_settings.get(name) != settings[name]]
        if bool(old_settings.get("patience")) != bool(settings["patience"]):  # it needs validation titles
            changes.append("patience")
        if shapes != expected_shapes or changes:
            pairs = (f"train.{name} was {old_settings.get(name)}, is {settings[name]}" for name in changes)
            problem = f"was written with other settings: {', '.join(pairs)}"
            if shapes != expected_shapes:
                problem = f"contains {shapes}, this run needs {expected_shapes}"
            raise ValueError(f"{file} {problem}. Choose another folder, or delete the file")
        try:
            trainer.resume_with(metadata.get("backend", trainer.backend))  # absent in older files
        except ValueError as error:
            raise ValueError(f"{file}: {error}. Choose another folder, or delete the file") from error
        trainer.restore(checkpoint.get_slice)
    trainer.steps = metadata["steps"]
    return Position(**metadata["position"])


class MemoryCheckpointer:
    """Keeps a copy of the best epoch in memory, for runs that are never resumed."""

    def __init__(self) -> None:
        self._best: dict[str, Tensor] = {}
        self._steps = 0

    def save(self, trainer: Trainer, position: Position) -> None:
        """Does nothing: there is no file."""

    def mark_best(self, trainer: Trainer) -> None:
        """Copies the state of the trainer into the memory of the previous copy."""
        for name, part in trainer.parts().items():
            part.copy_to(self._best.setdefault(name, torch.empty(part.shape, dtype=part.dtype)))
        self._steps = trainer.steps

    def restore_best(self, trainer: Trainer) -> None:
        """Restores the trainer from the copy of the best epoch."""
        trainer.restore(self._best.__getitem__)
        trainer.steps = self._steps


class Checkpointer:
    """Writes ``last.safetensors`` and ``best.safetensors`` to a folder, which is created if missing."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.last, self.best = folder / "last.safetensors", folder / "best.safetensors"

    def resume(self, trainer: Trainer) -> Position:
        """Restores the trainer from the last checkpoint, if there is one, and returns its position.

        Raises:
            ValueError: See ``read_checkpoint``.
        """
        if not self.last.exists():
            return Position()
        position = read_checkpoint(self.last, trainer)
        if position.best == position.epoch and not position.batch:
            self.mark_best(trainer)  # the run may have been killed between save and mark_best
        return position

    def save(self, trainer: Trainer, position: Position) -> None:
        """Replaces ``last.safetensors`` by the current state."""
        write_checkpoint(self.last, trainer, position)

    def mark_best(self, trainer: Trainer) -> None:
        """Makes ``best.safetensors`` a link to the last checkpoint."""
        with replaced_file(self.best) as new_file:
            new_file.unlink(missing_ok=True)  # left by a killed process
            try:
                os.link(self.last, new_file)
            except OSError:  # a file system without hard links
                shutil.copyfile(self.last, new_file)

    def restore_best(self, trainer: Trainer) -> None:
        """Restores the trainer from the best checkpoint."""
        read_checkpoint(self.best, trainer)
