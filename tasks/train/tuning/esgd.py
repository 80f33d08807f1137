"""Searches for a good optimizer by ESGD, which alternates stochastic gradient descent and evolution.

A generation has two steps. In gradient descent, each of the μ members draws an optimizer and a learning rate
and trains for K_s epochs; if its fitness (the tuning score) falls, its previous state is restored (back-off).
In evolution, λ offspring are created. An offspring is the mean of ρ random members plus N(0, σ_k²) noise,
with σ_k = σ / k in generation k. Of the μ + λ members and offspring, the m best survive, and μ − m of the
others, drawn at random (m-elitist). The best fitness never falls, because m ≥ 1 and back-off preserves the
fitness of each member.

References: Cui et al. Evolutionary Stochastic Gradient Descent for Optimization of Deep Neural Networks.
    NeurIPS 2018, algorithm 1. https://arxiv.org/abs/1810.06773

We differ: all members start from the same rows, because the mean of states with different initializations is
meaningless. The learning-rate schedule spans all generations. Every generation begins with a new optimizer
state, because a member changes its optimizer and offspring have no optimizer state.
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
    population: int = setting(8, "Number of members μ", ge=1, le=1000)
    offspring: int = setting(8, "Number of offspring λ in a generation", ge=0, le=10_000)
    parents: int = setting(2, "Number of members ρ whose mean is an offspring", ge=1)
    epochs: int = setting(1, "Number of epochs K_s for which a member trains in a generation", ge=1)
    elite: int = setting(
        4, "Number of best members m that survive; the other survivors are drawn at random", ge=1
    )
    sigma: float = setting(0.01, "Standard deviation of the noise in the first generation", ge=0)

    def __post_init__(self) -> None:
        for name in ("elite", "parents"):
            if (value := getattr(self, name)) > self.population:
                raise ValueError(
                    f"{name} is {value}; it must not exceed population, which is {self.population}"
                )

    def generations(self, space: Space) -> int:
        """Returns the number of generations in the budget; a generation costs population × epochs epochs."""
        return max(1, space.trainings * space.epochs // (self.population * self.epochs))

    def search(self, space: Space, folder: Path, submit: Submit) -> Iterator[Progress]:
        """Runs or resumes the search, and yields a Progress after each generation.

        Args:
            space: Optimizers, range of learning rates, and the budget of the search.
            folder: Folder of the journal and of the states of members, from which a search resumes.
            submit: Calls a function with arguments in a worker and returns a future.
        """
        generation_count = self.generations(space)
        journal = Journal(folder, self, space, generation_count)
        for generation in range(len(journal.rounds), generation_count):
            started, members = time.perf_counter(), last_members(journal.rounds, self.population)
            rng = np.random.default_rng([space.seed, generation])
            trials, trained_members = self._train_generation(space, folder, members, generation, rng, submit)
            members = self._evolve(space, folder, trained_members, generation, rng, submit)
            winners = tuple((member.rule, member.score) for member in members[: self.elite])
            state, seconds = [asdict(member) for member in members], time.perf_counter() - started
            yield journal.add(Round(trials, winners, seconds, state))
            used_files = {file for member in members for file in member.files}
            for file in folder.glob("*.safetensors"):
                if file.name not in used_files:
                    file.unlink()

    def write_best(self, space: Space, folder: Path, file: Path) -> None:
        """Writes the state of the best member of a finished search to ``file``, as a checkpoint."""
        best_member = last_members(read_rounds(folder), self.population)[0]
        write_member(space.corpus, folder, space.candidates[0].settings, best_member, file)

    def _train_generation(
        self,
        space: Space,
        folder: Path,
        members: Sequence[Member],
        generation: int,
        rng: np.random.Generator,
        submit: Submit,
    ) -> tuple[tuple[TuningTrial, ...], list[Member]]:
        """Trains each member with a random optimizer and rate; returns the results and the new members."""
        draws = [space.draw(rng) for _ in members]
        all_epochs, jobs = self.epochs * self.generations(space), []
        for index, (member, (candidate, factor)) in enumerate(zip(members, draws, strict=True)):
            seed = space.seed  # in the first generation, all members start from the same rows
            if generation:
                seed = int(np.random.SeedSequence([space.seed, index]).generate_state(1)[0])
            settings = replace(
                candidate.scale_rate(factor), epochs=all_epochs, patience=all_epochs, seed=seed
            )
            file = f"{generation:04d}-{index:04d}.safetensors"
            jobs.append(TrainingJob(member, settings, generation * self.epochs, self.epochs, file))
        results = _map_in_workers(train_members, jobs, space, folder, submit)
        trials, trained_members = [], []
        for job, (candidate, factor), (score, steps) in zip(jobs, draws, results, strict=True):
            member, rate = job.member, candidate.rate * factor
            is_kept = score > 0 and score >= member.score
            trials.append(TuningTrial(candidate.name, factor, rate, score, is_kept, steps))
            optimizer = candidate.name if is_kept else member.rule
            trained_members.append(Member((job.file,), optimizer, max(score, member.score)))
        return tuple(trials), trained_members

    def _evolve(
        self,
        space: Space,
        folder: Path,
        members: list[Member],
        generation: int,
        rng: np.random.Generator,
        submit: Submit,
    ) -> list[Member]:
        """Returns the μ members of the next generation, the m best first."""
        offspring = []
        for _ in range(self.offspring):
            parents = rng.choice(len(members), self.parents, replace=False).tolist()
            files = tuple(members[index].files[0] for index in parents)
            seed = int(rng.integers(2**31))
            offspring.append(Member(files, "recombination", 0.0, self.sigma / (generation + 1), seed))
        settings = space.candidates[0].settings
        scores = _map_in_workers(score_members, offspring, space, folder, submit, settings)
        offspring = [replace(member, score=score) for member, score in zip(offspring, scores, strict=True)]
        ranked = sorted([*members, *offspring], key=lambda member: -member.score)  # stable: parents first
        elite, other_members = ranked[: self.elite], ranked[self.elite :]
        survivors = rng.choice(len(other_members), self.population - self.elite, replace=False)
        return elite + [other_members[index] for index in sorted(survivors.tolist())]


def last_members(rounds: Sequence[Round], population: int) -> list[Member]:
    """Returns the members after the last round, best first; if there is no round, initial members."""
    if not rounds:
        return [Member()] * population
    return [Member(**{**fields, "files": tuple(fields["files"])}) for fields in rounds[-1].state]


def _map_in_workers(
    function: Callable[..., list[ResultT]],
    items: Sequence[ItemT],
    space: Space,
    folder: Path,
    submit: Submit,
    *arguments: object,
) -> list[ResultT]:
    """Splits ``items`` into pieces, and calls ``function(corpus, folder, *arguments, piece)`` in workers.

    Returns:
        The concatenated results, in the order of ``items``.
    """
    bounds = np.linspace(0, len(items), min(space.pieces, len(items)) + 1).astype(int).tolist()
    pieces = [items[start:end] for start, end in pairwise(bounds)]
    futures = [submit(function, space.corpus, folder, *arguments, piece) for piece in pieces]
    return [result for future in futures for result in future.result()]
