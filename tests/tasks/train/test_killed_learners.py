"""Killed learners: no batch is lost, training continues, and the score does not change."""

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from storage.stages import ROOT
from tasks.train.loop import Training
from tasks.train.objectives import Label
from tasks.train.runners import Hogwild, OneProcess
from tasks.train.runners.learner import FINISHED_ROUNDS
from tasks.train.settings import TrainSettings
from tests.tasks.train.training import run

pytest.importorskip("numba", reason="learners make compiled steps")


@contextmanager
def killing(training: Training, kills: int, seed: int = 1) -> Iterator[list[int]]:
    """Kills learners while the run goes on, each at a random moment after its first step; who was killed."""
    killed: list[int] = []
    rng, over = random.Random(seed), threading.Event()

    def work() -> None:
        while len(killed) < kills and not over.is_set():
            swarm, place = training.swarm, rng.randrange(2)
            assert swarm is not None
            if swarm.shared is None or len(swarm.pids) < 2:
                time.sleep(0.01)
                continue
            before, pid = int(swarm.shared["marks"][place, FINISHED_ROUNDS]), swarm.pids[place]
            while not over.is_set() and pid not in killed and swarm.shared is not None:
                if int(swarm.shared["marks"][place, FINISHED_ROUNDS]) != before:
                    time.sleep(rng.random() * 0.02)
                    os.kill(pid or 0, signal.SIGKILL)
                    killed.append(pid or 0)
                time.sleep(0.001)
            time.sleep(0.002)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def sample_corpus(folder: Path) -> Path:
    """The Corpus of the bundled guide, made as the nightly run makes it."""
    from benchmarks.stages import make_corpus

    return make_corpus(folder / "home", [ROOT / "sample" / "guide.xml.gz"])


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_corpus(tmp_path_factory.mktemp("sample"))


REAL = TrainSettings(epochs=3, patience=3, tuning_share=0.2, threads=1, device="cpu")


def scored(corpus: Path, settings: TrainSettings) -> tuple[Training, float]:
    training = run(Training(corpus, replace(settings, backend="compiled")))
    return training, max(epoch["tuning_score"] for epoch in training.history)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 32])
def test_hogwild_reaches_the_score_of_sequential_training(corpus: Path, size: int):
    settings = replace(REAL, objective=Label(batch_size=size), epochs=2 if size < 32 else 3)
    scores = [scored(corpus, replace(settings, runner=runner))[1] for runner in (OneProcess(), Hogwild())]
    assert scores[1] > scores[0] - 0.03, scores


def undisturbed(corpus: Path, settings: TrainSettings) -> tuple[float, float]:
    """Returns the mean score of runs, and how far the score of another run may be from it."""
    scores = [scored(corpus, replace(settings, seed=seed))[1] for seed in (1, 2, 3)]
    return float(np.mean(scores)), float(3 * np.std(scores, ddof=1) + 0.01)


def disturbed(corpus: Path, settings: TrainSettings, kills: int) -> None:
    """Kills learners; no batch is lost (the swarm counts them), and the score is that of other runs."""
    training = Training(corpus, settings)
    cut, replaced = 0.0, 0.0
    with killing(training, kills) as killed:
        for progress in training.run():
            cut += progress.metrics["batches_cut_off"]
            replaced += progress.metrics["learners_replaced"]
    assert len(killed) == kills and replaced >= kills - 2 and cut <= kills
    mean, width = undisturbed(corpus, settings)
    assert max(epoch["tuning_score"] for epoch in training.history) == pytest.approx(mean, abs=width)


@pytest.mark.slow
def test_killed_learners_do_not_change_the_score(corpus: Path):
    settings = replace(REAL, objective=Label(batch_size=4), epochs=6, patience=6)
    disturbed(corpus, replace(settings, runner=Hogwild(interval=4)), 3)


@pytest.mark.soak
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("runner", [Hogwild(), Hogwild(interval=8)])
def test_fifty_kills(corpus: Path, runner: Hogwild):
    settings = replace(REAL, objective=Label(batch_size=1), epochs=100, patience=100, runner=runner)
    disturbed(corpus, settings, 50)
