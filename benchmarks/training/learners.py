"""Hogwild learners beside one learner and beside the sequential runner (docs/runners.md).

Speed: batches of 32, three runs of each, which alternate. The speed of a run is the median over its epochs
without the first, in which processes start; the time of scoring is not included. CPU seconds are those of the
learners only. Precision: after the same number of epochs, by batch size, with one seed each.
"""

import os
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.claims import Claim
from benchmarks.rivals.contest import Contest
from tasks.encoder.bags import Bagger
from tasks.train.loop import Training
from tasks.train.objectives import Label
from tasks.train.runners import Hogwild, OneProcess, Runner
from tasks.train.settings import TrainSettings

SIZE, ROUNDS, EPOCHS, PROTOCOL = 32, 3, 6, "unseen_title"
ONE, TWO, SELDOM = Hogwild(learners=1), Hogwild(), Hogwild(interval=8)
NAMES = {ONE: "1 learner", TWO: "2 learners", SELDOM: "2 learners, interval 8"}


@dataclass(frozen=True)
class Paced:
    """Titles per wall and CPU second of a run, and its staleness (steps of other learners during a step)."""

    wall: float
    cpu: float
    staleness: float


def measure_learners(corpus: Path, quick: bool) -> Iterator[Claim]:
    """Measures all claims of this file."""
    rounds, epochs = (1, 3) if quick else (ROUNDS, EPOCHS)
    runs_by_runner = {runner: list[Paced]() for runner in NAMES}
    for _ in range(rounds):
        for runner, runs in runs_by_runner.items():
            runs.append(_pace(corpus, runner, epochs))
    for runner, name in NAMES.items():
        if runner == ONE:
            continue
        for unit, per, aim in (("wall", "s", 1.6), ("cpu", "CPU-s of learners", 0.8)):
            ours, theirs = ([getattr(run, unit) for run in runs_by_runner[own]] for own in (runner, ONE))
            ratio, rival = _ratio(ours, theirs), statistics.median(theirs)
            yield Claim(
                f"{name}, batches of {SIZE}: training, titles/{per}",
                ratio * rival,
                "1 learner",
                rival,
                aim=aim,
            )
        stale = statistics.median(run.staleness for run in runs_by_runner[runner])
        yield Claim(f"{name}: steps of others within a step", stale, better=None)
    yield from _precisions(corpus, quick)


def _precisions(corpus: Path, quick: bool) -> Iterator[Claim]:
    contest = Contest(corpus)
    for size in (SIZE,) if quick else (1, 4, SIZE):
        runners = OneProcess(), TWO, SELDOM
        sequential, *learner_precisions = (
            _precision(contest, runner, size, 1 if quick else 4) for runner in runners
        )
        for runner, precision in zip(runners[1:], learner_precisions, strict=True):
            yield Claim(
                f"{NAMES[runner]}, batches of {size}: precision@10 on {PROTOCOL}",
                precision,
                "sequential",
                sequential,
                aim=0.98,
            )


def _pace(corpus: Path, runner: Runner, epochs: int) -> Paced:
    training = _training(corpus, runner, SIZE, epochs)
    no_scores = {"mean_cosine": 0.0, "effective_rank": 0.0}
    training.tuning_set.score = lambda learner: no_scores  # pyright: ignore[reportAttributeAccessIssue]
    speeds, seconds, stale = [], [], []
    for progress in training.run():
        assert training.swarm is not None
        speeds.append(progress.metrics["titles_per_second"])
        stale.append(progress.metrics["staleness"])
        seconds.append(sum(cpu_seconds(pid) for pid in training.swarm.pids if pid))
    shown = len(training.tuning_set.training) * (epochs - 1)
    return Paced(statistics.median(speeds[1:]), shown / (seconds[-1] - seconds[0]), statistics.median(stale))


def _precision(contest: Contest, runner: Runner, size: int, epochs: int) -> float:
    training, corpus = _training(contest.folder, runner, size, epochs), contest.corpus
    list(training.run())
    dense = training.settings.encoder.sentence_features(corpus.sentences, corpus.descriptions)
    vectors = training.trainer.vectors(corpus.tokens, Bagger(corpus.kinds), dense).numpy()
    return contest.scores(vectors, PROTOCOL, resamples=2)["precision_at_10"].value


def _training(corpus: Path, runner: Runner, size: int, epochs: int) -> Training:
    settings = TrainSettings(epochs=epochs, objective=Label(batch_size=size), runner=runner)
    return Training(corpus, replace(settings, device="cpu", backend="compiled"))


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    pairs = zip(ours, theirs, strict=True)
    return statistics.median(our_value / rival_value for our_value, rival_value in pairs)


def cpu_seconds(pid: int) -> float:
    """Returns the CPU seconds of all threads of a running process (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
