"""Compiled training step beside torch's autograd on a CPU, and learners in several processes.

Four English guides, with the number of dimensions of the rivals (100) and with the default. Both backends
read the same titles as the same tokens. They alternate for several rounds, each in a new process and after a
run that is not measured (it loads or compiles the machine code). Ratios are medians over rounds, so that
other work on the machine slows both. CPU seconds include the thread that makes batches. training.py compares
with other libraries, learners.py measures the learners.
"""

import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.claims import Claim, guides, run
from benchmarks.processes import call_apart
from benchmarks.rivals.contest import Contest
from benchmarks.rivals.ours import Ours
from benchmarks.stages import make_corpus
from benchmarks.training.learners import measure_learners
from benchmarks.training.training import DIM, PROTOCOL, SHORT_BAGS, Run
from tasks.text.words import Words, WordsAndNgrams
from tasks.train.settings import TrainSettings

ROUNDS, EPOCHS = 3, 2


def measure_runners(quick: bool) -> Sequence[Claim]:
    """Measures all claims of this file."""
    claims: list[Claim] = []
    with tempfile.TemporaryDirectory() as folder:
        feeds = guides("ZA1") if quick else guides("UK1", "US1", "AU1", "ZA1")
        words = make_corpus(Path(folder) / "words", feeds, Words(), context=False)
        ngrams = make_corpus(Path(folder) / "ngrams", feeds, WordsAndNgrams(), context=False)
        full_corpus = make_corpus(Path(folder) / "full", feeds, WordsAndNgrams())
        for tokens, corpus, settings in (
            ("words", words, SHORT_BAGS),
            ("words and n-grams", ngrams, TrainSettings(dim=DIM)),
            ("as by default", full_corpus, TrainSettings()),
        ):
            claims += _beside_autograd(tokens, corpus, settings, 1 if quick else ROUNDS)
        claims += measure_learners(full_corpus, quick)
    return claims


def _beside_autograd(tokens: str, corpus: Path, settings: TrainSettings, rounds: int) -> Iterator[Claim]:
    """Compares CPU seconds and precision of both backends with one thread."""
    backends = [Ours(replace(settings, backend=backend)) for backend in ("compiled", "torch")]
    runs = [
        [call_apart(_second_run, trainer, corpus, seed, threads=1) for trainer in backends]
        for seed in range(1, rounds + 1)
    ]
    speeds = [[run.titles / run.spent.cpu for run in pair] for pair in runs]
    ratio, rival = statistics.median(ours / theirs for ours, theirs in speeds), "torch's autograd"
    value = statistics.median(theirs for _, theirs in speeds)
    name = f"{tokens}: training, one thread, titles/CPU-s"
    yield Claim(name, ratio * value, rival, value, aim=1)
    ours, theirs = (statistics.fmean(run.precision for run in trainer) for trainer in zip(*runs, strict=True))
    yield Claim(f"{tokens}: precision@10 on {PROTOCOL}, {EPOCHS} epochs", ours, rival, theirs, better=None)


def _second_run(trainer: Ours, corpus: Path, seed: int) -> Run:
    """Trains twice and returns the second run; called in a separate process."""
    contest = Contest(corpus)
    trainer.train(contest, 1, seed, 1)
    trained = trainer.train(contest, EPOCHS, seed, 1)
    precision = contest.scores(trained.vectors(), PROTOCOL, resamples=2)["precision_at_10"].value
    return Run(EPOCHS, trained.spent, precision, len(contest.training) * EPOCHS, 1)


if __name__ == "__main__":
    sys.exit(run(measure_runners, __doc__ or ""))
