"""Searches optimizers by ESGD, which alternates stochastic gradient descent and evolution.

A generation has two steps. Gradient descent: each of the μ members draws an optimizer (a rule) and a learning
rate and trains for K_s epochs; if its fitness (the tuning score) falls, its previous state is restored
(back-off). Evolution: λ offspring are created, each the mean of ρ random members plus N(0, σ_k²) noise, with
σ_k = σ / k in generation k. Of the μ + λ, the m best and μ − m others, drawn at random, survive (m-elitist).
The best fitness never falls, because m ≥ 1 and back-off preserves the fitness of each member.

Cui et al. Evolutionary Stochastic Gradient Descent for Optimization of Deep Neural Networks. NeurIPS 2018,
algorithm 1. https://arxiv.org/abs/1810.06773 We differ: members start from the same rows, since averaging
states of different initializations is meaningless; the learning-rate schedule spans all generations; every
generation begins with a new optimizer state, since a member changes its optimizer and offspring have none.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np

from storage.artifacts import Progress
from tasks.form import configurable, setting
from tasks.pool import Submit
from tasks.train.tuning.members import Member, TrainingJob, score_members, train_members, write_member
from tasks.train.tuning.space import Journal, Round, Space, TuningTrial, read_rounds

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


@configurable
class ESGD:
    """Search strategy ESGD: a population trains and evolves, in as many generations as the budget allows."""

    name: Literal["esgd"] = "esgd"
    population: int = setting(8, "Members μ", ge=1, le=1000)
    offspring: int = setting(8, "Offspring λ of a generation", ge=0, le=10_000)
    parents: int = setting(2, "Members ρ that are averaged into an offspring", ge=1)
    epochs: int = setting(1, "Epochs K_s that a member trains in a generation", ge=1)
    elite: int = setting(4, "Best members m that survive; the others are drawn at random", ge=1)
    sigma: float = setting(0.01, "Standard deviation of the noise in the first generation", ge=0)

    def __post_init__(self) -> None:
        for name in ("elite", "parents"):
            if (value := getattr(self, name)) > self.population:
                raise ValueError(
                    f"{name} is {value}; it must not exceed population, which is {self.population}"
                )

    def generations(self, space: Space) -> int:
        """Returns the number of generations in the budget; one costs population × epochs epochs."""
        return max(1, space.trainings * space.epochs // (self.population * self.epochs))

    def search(self, space: Space, folder: Path, submit: Submit) -> Iterator[Progress]:
        """Runs or resumes the search, and yields progress after each generation.

        Args:
            space: Optimizers, learning rates and the budget.
            folder: Folder of the journal and of the members' states.
            submit: Function that runs a call in a worker and returns a future.
        """
        generation_count = self.generations(space)
        journal = Journal(folder, self, space, generation_count)
        for number in range(len(journal.rounds), generation_count):
            started, members = time.perf_counter(), last_members(journal.rounds, self.population)
            rng = np.random.default_rng([space.seed, number])
            trials, trained_members = self._descend(space, folder, members, number, rng, submit)
            members = self._evolve(space, folder, trained_members, number, rng, submit)
            winners = tuple((member.rule, member.score) for member in members[: self.elite])
            state, seconds = [asdict(member) for member in members], time.perf_counter() - started
            yield journal.add(Round(trials, winners, seconds, state))
            used_files = {file for member in members for file in member.files}
            for file in folder.glob("*.safetensors"):
                if file.name not in used_files:
                    file.unlink()

    def write_best(self, space: Space, folder: Path, file: Path) -> None:
        """Writes the best member of a finished search as a checkpoint."""
        best = last_members(read_rounds(folder), self.population)[0]
        write_member(space.corpus, folder, space.entries[0].settings, best, file)

    def _descend(
        self,
        space: Space,
        folder: Path,
        members: Sequence[Member],
        number: int,
        rng: np.random.Generator,
        submit: Submit,
    ) -> tuple[tuple[TuningTrial, ...], list[Member]]:
        draws = [space.draw(rng) for _ in members]
        all_epochs, jobs = self.epochs * self.generations(space), []
        for position, (member, (entry, factor)) in enumerate(zip(members, draws, strict=True)):
            seed = space.seed  # in the first generation, all members start from the same rows
            if number:
                seed = int(np.random.SeedSequence([space.seed, position]).generate_state(1)[0])
            settings = replace(entry.scale_rate(factor), epochs=all_epochs, patience=all_epochs, seed=seed)
            file = f"{number:04d}-{position:04d}.safetensors"
            jobs.append(TrainingJob(member, settings, number * self.epochs, self.epochs, file))
        results = _map_in_workers(train_members, jobs, space, folder, submit)
        trials, trained_members = [], []
        for job, (entry, factor), (score, steps) in zip(jobs, draws, results, strict=True):
            member, rate = job.member, entry.rate * factor
            is_kept = score > 0 and score >= member.score
            trials.append(TuningTrial(entry.name, factor, rate, score, is_kept, steps))
            optimizer = entry.name if is_kept else member.rule
            trained_members.append(Member((job.file,), optimizer, max(score, member.score)))
        return tuple(trials), trained_members

    def _evolve(
        self,
        space: Space,
        folder: Path,
        members: list[Member],
        number: int,
        rng: np.random.Generator,
        submit: Submit,
    ) -> list[Member]:
        """Returns the μ members of the next generation, the m best first."""
        offspring = []
        for _ in range(self.offspring):
            parent_places = rng.choice(len(members), self.parents, replace=False).tolist()
            files = tuple(members[position].files[0] for position in parent_places)
            seed = int(rng.integers(2**31))
            offspring.append(Member(files, "recombination", 0.0, self.sigma / (number + 1), seed))
        settings = space.entries[0].settings
        scores = _map_in_workers(score_members, offspring, space, folder, submit, settings)
        offspring = [replace(member, score=score) for member, score in zip(offspring, scores, strict=True)]
        ranked = sorted([*members, *offspring], key=lambda member: -member.score)  # stable: parents first
        elite, others = ranked[: self.elite], ranked[self.elite :]
        survivors = rng.choice(len(others), self.population - self.elite, replace=False)
        return elite + [others[position] for position in sorted(survivors.tolist())]


def last_members(rounds: Sequence[Round], population: int) -> list[Member]:
    """Returns the members after the last round, best first; initial members before the first round."""
    if not rounds:
        return [Member()] * population
    return [Member(**{**fields, "files": tuple(fields["files"])}) for fields in rounds[-1].state]


def _map_in_workers(
    function: Callable[..., list[ResultT]],
    items: Sequence[ItemT],
    space: Space,
    folder: Path,
    submit: Submit,
    *leading: object,
) -> list[ResultT]:
    """Splits ``items`` into pieces, calls ``function(corpus, folder, *leading, piece)`` for each in a worker.

    Returns:
        The concatenated results, in the order of ``items``.
    """
    bounds = np.linspace(0, len(items), min(space.pieces, len(items)) + 1).astype(int).tolist()
    pieces = [items[begin:end] for begin, end in pairwise(bounds)]
    futures = [submit(function, space.corpus, folder, *leading, piece) for piece in pieces]
    return [result for future in futures for result in future.result()]
