"""Checkpoints: rows, optimizer state and parameters with the position of the next batch. A file
is written beside its place and renamed, so a kill leaves the one before. The best is a second name (a hard
link) of what was the last when it was best: no copy on disk or in memory.
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

# Settings that may change when a run is resumed: how long, and where and how fast it computes.
MAY_CHANGE_ON_RESUME = (
    "epochs",
    "patience",
    "save_seconds",
    "table",
    "device",
    "threads",
    "workers",
    "precision",
)
MAY_CHANGE_ON_RESUME += ("runner",)


@dataclass
class Position:
    """Where a run is."""

    epoch: int = 0  # epochs finished
    batch: int = 0  # batches done of the current epoch
    loss: float = 0.0  # the sum of their losses
    history: list[dict[str, float]] = field(default_factory=list)  # metrics of each finished epoch
    best: int = 0  # the best epoch so far, from 1; 0 before the first


def write_checkpoint(file: Path, trainer: Trainer, position: Position) -> None:
    """Writes everything into one safetensors file, in one rename."""
    about = {"settings": asdict(trainer.settings), "position": asdict(position), "steps": trainer.steps}
    write_safetensors(file, trainer.parts(), {"about": json.dumps(about)})


def read_checkpoint(file: Path, trainer: Trainer) -> Position:
    """Restores a learner, and returns where its run was; ValueError if settings or corpus were others."""
    with safe_open(file, framework="pt", device="cpu") as opened:
        about = json.loads(opened.metadata()["about"])
        found = {name: tuple(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118  (no mapping: safe_open has keys() alone)
        expected = {name: part.shape for name, part in trainer.parts().items()}
        before, now = about["settings"], json.loads(json.dumps(asdict(trainer.settings)))
        changed = [name for name in now if name not in MAY_CHANGE_ON_RESUME and before.get(name) != now[name]]
        if bool(before.get("patience")) != bool(now["patience"]):  # titles are set aside or not
            changed.append("patience")
        if found != expected or changed:
            those = ", ".join(f"train.{name} was {before.get(name)}, is {now[name]}" for name in changed)
            why = f"was made with other settings: {those}"
            why = f"holds {found}, this run needs {expected}" if found != expected else why
            raise ValueError(f"{file} {why}. Choose another folder, or delete it")
        trainer.restore(opened.get_slice)
    trainer.steps = about["steps"]
    return Position(**about["position"])


class MemoryCheckpointer:
    """Keeps a copy of the best epoch in memory, for a run that is not meant to be resumed."""

    def __init__(self) -> None:
        self._best: dict[str, Tensor] = {}
        self._steps = 0

    def save(self, trainer: Trainer, position: Position) -> None:
        """Does nothing."""

    def mark_best(self, trainer: Trainer) -> None:
        """Copies everything, into memory used before where there is some (much faster to write)."""
        for name, part in trainer.parts().items():
            copy = self._best.setdefault(name, torch.empty(part.shape, dtype=part.dtype))
            torch.cat([piece.cpu() for piece in part.pieces()], out=copy)
        self._steps = trainer.steps

    def restore_best(self, trainer: Trainer) -> None:
        """Restores the copy."""
        trainer.restore(self._best.__getitem__)
        trainer.steps = self._steps


class Checkpointer:
    """Keeps ``last.safetensors`` and ``best.safetensors`` in a folder, which is made if missing."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.last, self.best = folder / "last.safetensors", folder / "best.safetensors"

    def resume(self, trainer: Trainer) -> Position:
        """Restores the last checkpoint, if any; returns the position. Raises like ``read_checkpoint``."""
        if not self.last.exists():
            return Position()
        position = read_checkpoint(self.last, trainer)
        if position.best == position.epoch and not position.batch:
            self.mark_best(trainer)  # in case of a kill between save and mark_best
        return position

    def save(self, trainer: Trainer, position: Position) -> None:
        """Replaces the last checkpoint."""
        write_checkpoint(self.last, trainer, position)

    def mark_best(self, trainer: Trainer) -> None:
        """Links the last checkpoint as the best."""
        with replaced_file(self.best) as new:
            new.unlink(missing_ok=True)  # left by a killed process
            try:
                os.link(self.last, new)
            except OSError:  # a file system without hard links
                shutil.copyfile(self.last, new)

    def restore_best(self, trainer: Trainer) -> None:
        """Restores the best checkpoint."""
        read_checkpoint(self.best, trainer)
