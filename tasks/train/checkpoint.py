"""Writes and reads checkpoints of a training run.

A checkpoint is a file with the embedding rows, the optimizer state, the dense parameters and the position of
the run. It is written under a temporary name and then renamed, so an interrupted write leaves the previous
file intact. The best checkpoint is a hard link to the checkpoint at the end of the best epoch, not a copy.
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
# Trainer.switch_backend checks the backend.
_DURATION = ("epochs", "patience", "save_seconds")
MAY_CHANGE_ON_RESUME = (*_DURATION, "table", "device", "threads", "workers", "precision", "runner", "backend")


@dataclass
class Position:
    """Position of a training run, and its metrics so far. Checkpoints store it as JSON."""

    epoch: int = 0  # number of finished epochs
    batch: int = 0  # number of finished batches of the current epoch
    loss: float = 0.0  # sum of the losses of the finished batches of the current epoch
    history: list[dict[str, float]] = field(default_factory=list)  # metrics of each finished epoch
    best: int = 0  # number of the best epoch so far, from 1; 0 before the first epoch ends


def write_checkpoint(file: Path, trainer: Trainer, position: Position) -> None:
    """Writes the state of the trainer and the position of the run to a safetensors file, atomically."""
    metadata = {
        "settings": asdict(trainer.settings),
        "position": asdict(position),
        "steps": trainer.steps,
        "backend": trainer.backend,
    }
    write_safetensors(file, trainer.sections(), {"about": json.dumps(metadata)})


def read_checkpoint(file: Path, trainer: Trainer) -> Position:
    """Restores the trainer from a checkpoint file and returns the position of the run.

    Raises:
        ValueError: The checkpoint was written with other settings, for another corpus, or by a backend that
            is not available.
    """
    with safe_open(file, framework="pt", device="cpu") as checkpoint:
        metadata = json.loads(checkpoint.metadata()["about"])
        shapes = {name: tuple(checkpoint.get_slice(name).get_shape()) for name in checkpoint.keys()}  # noqa: SIM118  (safe_open is no mapping)
        expected_shapes = {name: section.shape for name, section in trainer.sections().items()}
        old_settings, settings = metadata["settings"], json.loads(json.dumps(asdict(trainer.settings)))
        fixed_names = (name for name in settings if name not in MAY_CHANGE_ON_RESUME)
        changed_names = [name for name in fixed_names if old_settings.get(name) != settings[name]]
        # Early stopping holds out validation titles, so it cannot be switched on or off in a resumed run.
        if bool(old_settings.get("patience")) != bool(settings["patience"]):
            changed_names.append("patience")
        problem = ""
        if shapes != expected_shapes:
            problem = f"contains {shapes}, this run needs {expected_shapes}"
        elif changed_names:
            changes = (
                f"train.{name} was {old_settings.get(name)}, is {settings[name]}" for name in changed_names
            )
            problem = f"was written with other settings: {', '.join(changes)}"
        if problem:
            raise ValueError(f"{file} {problem}. Choose another folder, or delete the file")
        try:
            trainer.switch_backend(metadata.get("backend", trainer.backend))  # older files have no backend
        except ValueError as error:
            raise ValueError(f"{file}: {error}. Choose another folder, or delete the file") from error
        trainer.restore(checkpoint.get_slice)
    trainer.steps = metadata["steps"]
    return Position(**metadata["position"])


class MemoryCheckpointer:
    """Stores the state after the best epoch in memory, for runs that are never resumed."""

    def __init__(self) -> None:
        self._best: dict[str, Tensor] = {}
        self._steps = 0

    def save(self, trainer: Trainer, position: Position) -> None:
        """Does nothing, because the run is never resumed."""

    def mark_best(self, trainer: Trainer) -> None:
        """Copies the state of the trainer. The copy overwrites the one of the previous best epoch."""
        for name, section in trainer.sections().items():
            section.copy_to(self._best.setdefault(name, torch.empty(section.shape, dtype=section.dtype)))
        self._steps = trainer.steps

    def restore_best(self, trainer: Trainer) -> None:
        """Restores the state that the trainer had after the best epoch."""
        trainer.restore(self._best.__getitem__)
        trainer.steps = self._steps


class Checkpointer:
    """Writes ``last.safetensors`` and ``best.safetensors`` to a folder, which is created if missing."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._last_file, self._best_file = folder / "last.safetensors", folder / "best.safetensors"

    def resume(self, trainer: Trainer) -> Position:
        """Restores the trainer from ``last.safetensors``, if it exists, and returns the position of the run.

        Raises:
            ValueError: See ``read_checkpoint``.
        """
        if not self._last_file.exists():
            return Position()
        position = read_checkpoint(self._last_file, trainer)
        if position.best == position.epoch and not position.batch:
            self.mark_best(trainer)  # the run may have been killed between save and mark_best
        return position

    def save(self, trainer: Trainer, position: Position) -> None:
        """Writes the state of the trainer and the position of the run to ``last.safetensors``."""
        write_checkpoint(self._last_file, trainer, position)

    def mark_best(self, trainer: Trainer) -> None:
        """Makes ``best.safetensors`` a hard link to ``last.safetensors`` (a copy if links are impossible)."""
        with replaced_file(self._best_file) as new_file:
            new_file.unlink(missing_ok=True)  # a killed process may have left it
            try:
                os.link(self._last_file, new_file)
            except OSError:  # the file system has no hard links
                shutil.copyfile(self._last_file, new_file)

    def restore_best(self, trainer: Trainer) -> None:
        """Restores the trainer from ``best.safetensors``."""
        read_checkpoint(self._best_file, trainer)
