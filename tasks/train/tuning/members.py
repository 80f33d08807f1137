"""Trains and scores the members of a population. A member is a state of a Trainer, stored in a file.

The state of a member consists of its parameters, the set of rows that were updated, and the buffers of the
objective. It does not include optimizer state, because each generation draws a new optimizer for a member.
"""

import math
from collections.abc import Sequence
from contextlib import ExitStack
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
    """Member of the population of ESGD.

    Its state is the mean of the states in its files. A member without files has the state before training.
    """

    files: tuple[str, ...] = ()  # names of files
    rule: str = "start"  # optimizer that trained the member last, or "start", or "recombination"
    score: float = 0.0  # tuning score (tasks/train/early_stopping.py)
    sigma: float = 0.0  # standard deviation of the noise added to the parameters
    seed: int = 0  # seed of the noise


@dataclass(frozen=True)
class TrainingJob:
    """The training of one member of a population in one generation."""

    member: Member
    settings: TrainSettings  # optimizer, epochs of all generations, seed of the batches
    first: int  # number of epochs before this generation: the position in the learning-rate schedule
    epochs: int  # number of epochs in this generation
    file: str  # name of the file to write


def train_members(corpus: Path, folder: Path, jobs: Sequence[TrainingJob]) -> list[tuple[float, int]]:
    """Trains members, and writes the state of each member after its best epoch.

    If training does not raise the tuning score of a member, its previous state is written (back-off).

    Args:
        corpus: Folder of a Corpus.
        folder: Folder of the files of all members.
        jobs: Trainings, one per member.

    Returns:
        Tuning score and number of steps of each training; the score is 0 if the training diverged.
    """
    results = []
    for job in jobs:
        training, score = _open_member(corpus, job.settings, folder, job.member), 0.0
        best_state = MemoryCheckpointer()
        training.position = position = Position(job.first, history=[{"loss": math.inf}] * job.first)
        try:
            for _ in islice(training.run(best_state), job.epochs):
                pass
            score = position.history[position.best - 1]["tuning_score"]
        except Diverged:
            pass
        results.append((score, training.trainer.steps))
        if score < job.member.score or not position.best:
            training = _open_member(corpus, job.settings, folder, job.member)
        elif position.best != position.epoch:
            best_state.restore_best(training.trainer)
        sections = training.trainer.sections().items()
        state = {name: section for name, section in sections if not _is_optimizer_state(name)}
        write_safetensors(folder / job.file, state, {})
    return results


def score_members(
    corpus: Path, folder: Path, settings: TrainSettings, members: Sequence[Member]
) -> list[float]:
    """Returns the tuning score of each member of a population; no member is trained."""
    training, scores = Training(corpus, settings), []
    for member in members:
        restore_member(training.trainer, folder, member)
        scores.append(training.tuning_set.score(training.trainer)["tuning_score"])
    return scores


def restore_member(trainer: Trainer, folder: Path, member: Member) -> None:
    """Restores the state of a member in a trainer. The optimizer state of the trainer does not change.

    If the member has no files, the trainer does not change at all.
    """
    if not member.files:
        return
    sections = trainer.sections()
    state = {name: section.tensor() for name, section in sections.items() if _is_optimizer_state(name)}
    with ExitStack() as stack:
        files = [stack.enter_context(safe_open(folder / file, framework="pt")) for file in member.files]
        for number, name in enumerate(sorted(sections.keys() - state.keys())):
            state[name] = _combine_parents(name, [file.get_tensor(name) for file in files], member, number)
        trainer.restore(state.__getitem__)


def write_member(corpus: Path, folder: Path, settings: TrainSettings, member: Member, file: Path) -> None:
    """Writes the state of a member to ``file``, as a checkpoint for the stages after training."""
    training = _open_member(corpus, settings, folder, member)
    write_checkpoint(file, training.trainer, training.position)


def _open_member(corpus: Path, settings: TrainSettings, folder: Path, member: Member) -> Training:
    training = Training(corpus, settings)
    restore_member(training.trainer, folder, member)
    return training


def _is_optimizer_state(name: str) -> bool:
    return name.startswith(("state.", "tuner.")) or ".state." in name


def _combine_parents(name: str, parents: list[Tensor], member: Member, number: int) -> Tensor:
    """Computes a tensor of a member from the tensors with the same name of its parents.

    Parameters are averaged, and noise is added. A row is touched (a step has updated it) if it is touched in
    any parent. Buffers are copied from the first parent.

    Args:
        name: Name of the tensor in checkpoints.
        parents: The tensor in the state of each parent.
        member: The member, which has the seed and the standard deviation of the noise.
        number: Number of the tensor, which changes the seed.
    """
    if name == "touched":
        return torch.stack(parents).any(0)
    if name.startswith("buffer.") or (len(parents) == 1 and not member.sigma):
        return parents[0]
    mean = torch.stack(parents).mean(0)
    generator = torch.Generator().manual_seed(member.seed * 1009 + number)
    return mean.add_(torch.empty_like(mean).normal_(generator=generator), alpha=member.sigma)
