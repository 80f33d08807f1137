"""Searches over optimizers and their learning rates at equal steps: ESGD beside the best single rule, random
search and Optuna's TPE.

Two guides, three seeds (with --quick one of each). Each has the same budget: as many epochs as six optimizers
trained whole at three learning rates. The best single rule is the best of those 18, as `guidespace tune`
finds it. Two scores: the tuning score, by which all of them choose, and precision@10 of the chosen one on
unseen_title, which none of them has seen. CPU seconds of one thread, evaluations included, in processes of
their own.
"""

import importlib.util
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from time import process_time
from typing import NamedTuple

from benchmarks.claims import Claim, guides, run
from benchmarks.nights.road import make_corpus
from benchmarks.processes import call_apart
from benchmarks.quality.folds import vectors_alone
from storage.formats.corpus import open_corpus
from tasks.pool import open_pool
from tasks.scoring.protocols import Titles, judge_knn
from tasks.train.loop import Training
from tasks.train.population.esgd import ESGD, survivors
from tasks.train.population.members import restore_member
from tasks.train.settings import TrainSettings
from tasks.train.step import Trainer
from tasks.train.tuning.random_search import RandomSearch
from tasks.train.tuning.runs import run_training
from tasks.train.tuning.settings import TuningSettings
from tasks.train.tuning.space import Space, Trial, read_rounds
from tasks.train.tuning.tpe import TPE

POOL = "sgd", "momentum", "rowwise_adagrad", "adagrad", "rmsprop", "adam"
DIM, K = 128, 10
SEARCHES = {"esgd": ESGD, "random": RandomSearch, "tpe": TPE}
NAMES = {"grid": "best single rule of tune", "random": "random search", "tpe": "Optuna's TPE"}


class Result(NamedTuple):
    """What a search found and took."""

    score: float  # tuning score of its best
    held_out: float  # precision@10 of it on unseen_title
    seconds: float
    steps: int


def search(corpus: Path, method: str, seed: int) -> Result:
    """One search over one corpus."""
    space = TuningSettings(optimizers=POOL, workers=0).space(corpus, TrainSettings(seed=seed, workers=0), DIM)
    started = process_time()
    with tempfile.TemporaryDirectory() as name, open_pool("processes", 0) as submit:
        folder = Path(name)
        if method == "grid":
            every = [run_training(corpus, entry, factor) for entry in space.entries for factor in (0.3, 1, 3)]
            trials = [
                Trial(own.name, own.factor, own.rate, own.score, True, own.marks[-1].step) for own in every
            ]
        else:
            for _ in SEARCHES[method]().search(space, folder, submit):
                pass
            trials = [trial for found in read_rounds(folder) for trial in found.trials]
        seconds, steps = process_time() - started, sum(trial.steps for trial in trials)
        if method == "esgd":
            best = survivors(read_rounds(folder), ESGD().population)[0]
            learner, score = Training(corpus, space.entries[0].settings).trainer, best.score
            restore_member(learner, folder, best)
        else:
            chosen = max(trials, key=lambda trial: trial.score)
            learner, score = trained(space, chosen), chosen.score
        return Result(score, held_out(corpus, learner), seconds, steps)


def trained(space: Space, trial: Trial) -> Trainer:
    """The learner of a training that a search did, trained again."""
    entry = next(entry for entry in space.entries if entry.name == trial.name)
    training = Training(space.corpus, entry.scale_rate(trial.factor))
    for _ in training.run():
        pass
    return training.trainer


def held_out(folder: Path, learner: Trainer) -> float:
    """Precision@10 on unseen_title, of the title alone."""
    corpus = open_corpus(folder)
    vectors, titles = vectors_alone(learner, corpus), Titles.of(corpus)
    own = judge_knn(titles, vectors, titles.labelled("unseen_title"), titles.labelled("train"), K)
    assert own.precision_at_k is not None
    return float(own.precision_at_k.mean())


def measure_population(quick: bool) -> Sequence[Claim]:
    """All claims of this file."""
    methods = ["esgd", "grid", "random"]
    if importlib.util.find_spec("optuna") is None:
        print("optuna is not installed; its rows are left out (pip install '.[optuna]')", file=sys.stderr)
    else:
        methods.append("tpe")
    found: dict[str, list[Result]] = {method: [] for method in methods}
    with tempfile.TemporaryDirectory() as folder:
        for feed in guides("ZA1") if quick else guides("ZA1", "AU1"):
            corpus = make_corpus(Path(folder) / feed.name.split(".")[0], [feed])
            for seed in (1,) if quick else (1, 2, 3):
                for method in methods:
                    found[method].append(result := call_apart(search, corpus, method, seed, threads=1))
                    print(feed.name, seed, method, *(f"{number:.4f}" for number in result), file=sys.stderr)
    claims = []
    for method in methods[1:]:
        aim = 1.0 if method == "grid" else None
        for name, which in (("tuning score", 0), ("precision@10 on unseen_title", 1)):
            ours, theirs = (mean(own[which] for own in found[each]) for each in ("esgd", method))
            about = {"rival": NAMES[method], "rival_value": theirs}
            title = f"ESGD's best member at equal steps, {name}"
            claims.append(Claim(name=title, value=ours, **about, aim=aim if not which else None))
    for method in methods[1:]:
        ours, theirs = (median(own.seconds for own in found[each]) for each in ("esgd", method))
        about = {"rival": NAMES[method], "rival_value": theirs}
        claims.append(Claim(name="ESGD, a search, CPU s", value=ours, **about, better="less"))
    return claims


if __name__ == "__main__":
    sys.exit(run(measure_population, __doc__ or ""))
