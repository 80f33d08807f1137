"""Trains and scores the members of a population, which are states of a Trainer stored in files.

The state of a member consists of its parameters, the touched rows and the buffers of the objective. It does
not include optimizer state: each generation draws a new optimizer, which starts with its initial state.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor

from storage.tables import write_safetensors
from tasks.train.checkpoint import MemoryCheckpointer, Position, write_checkpoint
from tasks.train.loop import Diverged, Training
from tasks.train.settings import TrainSettings
from tasks.train.step import Trainer


@dataclass(frozen=True)
class Member:
    """Member of the population of ESGD. Its state is in a file, or the mean of several files.

    A member without files has the state before training.
    """

    files: tuple[str, ...] = ()
    rule: str = "start"  # optimizer that trained the member last; else "start" or "recombination"
    score: float = 0.0  # tuning score (tasks/train/early_stopping.py)
    sigma: float = 0.0  # standard deviation of the noise added to the parameters
    seed: int = 0  # seed of the noise


@dataclass(frozen=True)
class TrainingJob:
    """The training of one member of a population in one generation."""

    member: Member
    settings: TrainSettings  # optimizer, epochs of all generations, seed of the batches
    first: int  # number of epochs before this generation; the position in the learning-rate schedule
    epochs: int
    file: str  # output file name


def train_members(corpus: Path, folder: Path, jobs: Sequence[TrainingJob]) -> list[tuple[float, int]]:
    """Trains members and writes the best epoch of each, or its previous state if that is better (back-off).

    Args:
        corpus: Folder of a Corpus.
        folder: Folder of the state files.
        jobs: Trainings, one per member.

    Returns:
        Tuning score and number of steps of each training; the score is 0 if it diverged.
    """
    results = []
    for job in jobs:
        training, best, score = _open(corpus, job.settings, folder, job.member), MemoryCheckpointer(), 0.0
        training.position = position = Position(job.first, history=[{"loss": math.inf}] * job.first)
        try:
            for _ in islice(training.run(best), job.epochs):
                pass
            score = position.history[position.best - 1]["tuning_score"]
        except Diverged:
            pass
        results.append((score, training.trainer.steps))
        if score < job.member.score or not position.best:
            training = _open(corpus, job.settings, folder, job.member)
        elif position.best != position.epoch:
            best.restore_best(training.trainer)
        _write(folder / job.file, training.trainer)
    return results


def score_members(
    corpus: Path, folder: Path, settings: TrainSettings, members: Sequence[Member]
) -> list[float]:
    """Returns the tuning score of each member, without training it."""
    training, scores = Training(corpus, settings), []
    for member in members:
        restore_member(training.trainer, folder, member)
        scores.append(training.tuning_set.score(training.trainer)["tuning_score"])
    return scores


def restore_member(trainer: Trainer, folder: Path, member: Member) -> None:
    """Loads the state of a member, without optimizer state, into a trainer; an initial member has none."""
    parts = trainer.parts()
    state = {
        name: torch.cat(list(part.pieces())) for name, part in parts.items() if _is_optimizer_state(name)
    }
    open_files = [safe_open(folder / file, framework="pt", device="cpu") for file in member.files]
    for number, name in enumerate(sorted(parts.keys() - state.keys()) if open_files else ()):
        state[name] = _blend(name, [file.get_tensor(name) for file in open_files], member, number)
    if open_files:
        trainer.restore(state.__getitem__)


def write_member(corpus: Path, folder: Path, settings: TrainSettings, member: Member, file: Path) -> None:
    """Writes the state of a member as a checkpoint for the stages after training."""
    training = _open(corpus, settings, folder, member)
    write_checkpoint(file, training.trainer, training.position)


def _open(corpus: Path, settings: TrainSettings, folder: Path, member: Member) -> Training:
    training = Training(corpus, settings)
    restore_member(training.trainer, folder, member)
    return training


def _write(file: Path, trainer: Trainer) -> None:
    parts = {name: part for name, part in trainer.parts().items() if not _is_optimizer_state(name)}
    write_safetensors(file, parts, {})


def _is_optimizer_state(name: str) -> bool:
    return name.startswith(("state.", "tuner.")) or ".state." in name


def _blend(name: str, parents: list[Tensor], member: Member, number: int) -> Tensor:
    """Combines one tensor of several parents to that of their offspring.

    Parameters are averaged, and noise is added. A row is touched if it is in any parent. Buffers are those of
    the first parent.
    """
    if name == "touched":
        return torch.stack(parents).any(0)
    if name.startswith("buffer.") or (len(parents) == 1 and not member.sigma):
        return parents[0]
    mean = torch.stack(parents).mean(0)
    generator = torch.Generator().manual_seed(member.seed * 1009 + number)
    return mean.add_(torch.empty_like(mean).normal_(generator=generator), alpha=member.sigma)
