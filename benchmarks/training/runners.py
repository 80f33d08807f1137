"""The compiled step on a CPU: training in label mode beside the mechanism (torch's autograd) and a loop in
plain PyTorch: EmbeddingBag(sparse), cross-entropy, Adagrad, batches of 1,024 (benchmarks/rivals/plain.py).

Four English guides, in as many dimensions as the rivals have (100). Every side reads the same titles as the
same tokens, without sentence vectors, which the loop does not know; one row has them, and how titles air, as
by default, beside the mechanism. Rounds in turn, each in a process of its own and after a run that is not
counted (it loads or compiles the machine code); ratios are medians over rounds, so that what else the machine
does meets all. Of numbers of threads the best of each side counts. Our CPU seconds count the thread that
makes batches.

Time to fastText's quality: seconds until precision@10 on unseen_title is 98 % of fastText's best, as in
benchmarks/training/training.py.

Learners in processes of their own, on the same titles as by default: benchmarks/training/learners.py.
"""

import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from benchmarks.claims import Claim, guides, run
from benchmarks.processes import call_apart
from benchmarks.rivals.contest import Contest, Rival, Trained, timed
from benchmarks.rivals.fasttext import FastText
from benchmarks.rivals.ours import Ours
from benchmarks.rivals.plain import LabelMode
from benchmarks.stages import make_corpus
from benchmarks.training.learners import measure_learners
from benchmarks.training.training import DIM, PROTOCOL, REACHED, SHORT_BAGS, Run, runs_of
from tasks.encoder.bags import Bagger
from tasks.text.words import Words, WordsAndNgrams
from tasks.train.loop import Training
from tasks.train.settings import TrainSettings

ROUNDS, THREADS = 5, (1, 2)


@dataclass(frozen=True)
class Stepped(Ours):
    """Ours, with a fixed backend."""

    backend: Literal["torch", "compiled"] = "compiled"

    def train(self, contest: Contest, epochs: int, seed: int, threads: int) -> Trained:
        """As Ours does."""
        settings = replace(self.settings, epochs=epochs, seed=seed, threads=threads, backend=self.backend)
        training, corpus = Training(contest.folder, settings), contest.corpus
        dense = self.settings.encoder.dense(corpus.sentences, corpus.descriptions)
        spent = timed(lambda: list(training.run()))
        vectors = training.trainer.vectors
        return Trained(spent, lambda: vectors(corpus.tokens, Bagger(corpus.kinds), dense).numpy())


def measure_runners(quick: bool) -> Sequence[Claim]:
    """All claims of this file."""
    claims: list[Claim] = []
    with tempfile.TemporaryDirectory() as folder:
        feeds = guides("ZA1") if quick else guides("UK1", "US1", "AU1", "ZA1")
        words = make_corpus(Path(folder) / "words", feeds, Words(), context=False)
        ngrams = make_corpus(Path(folder) / "ngrams", feeds, WordsAndNgrams(), context=False)
        whole = make_corpus(Path(folder) / "whole", feeds, WordsAndNgrams())
        bare = [_without_sentences(corpus) for corpus in (words, ngrams)]
        fasttexts = (
            FastText("fastText", "tokens", epochs=(3, 5, 10, 25)),
            FastText("fastText with its n-grams", "words", longest_ngram=5, epochs=(3, 5, 10, 25)),
        )
        kinds = ("words", SHORT_BAGS, 4, 2.5), ("words and n-grams", TrainSettings(dim=DIM), 4, 4.0)
        for (tokens, settings, epochs, aim), corpus, fasttext in zip(kinds, bare, fasttexts, strict=True):
            claims += _speed(tokens, corpus, settings, epochs, aim, quick)
            claims += _to_quality(tokens, corpus, settings, fasttext, quick)
        claims += _beside_mechanism("as by default", whole, TrainSettings(), quick)
        claims += measure_learners(whole, quick)
    return claims


def _speed(
    tokens: str, corpus: Path, settings: TrainSettings, epochs: int, aim: float, quick: bool
) -> Iterator[Claim]:
    """Titles a second beside the loop's, and precision@10 of both after as many epochs."""
    sides = {"ours": Stepped(settings), "loop": LabelMode()}
    measured = _rounds(sides, corpus, epochs, THREADS, 1 if quick else ROUNDS)
    for unit, per in (("wall", "s"), ("cpu", "CPU-s")):
        best = {
            side: max(
                (of_threads[threads] for threads in THREADS),
                key=lambda rounds: statistics.median(_speeds(rounds, unit)),
            )
            for side, of_threads in measured.items()
        }
        ours, theirs = (_speeds(best[side], unit) for side in ("ours", "loop"))
        rival = statistics.median(theirs)
        ratio = statistics.median(one / other for one, other in zip(ours, theirs, strict=True))
        threads = ", ".join(f"{side} {rounds[0].threads}" for side, rounds in best.items())
        yield Claim(
            f"{tokens}: training, threads: {threads}, titles/{per}",
            ratio * rival,
            "PyTorch, label mode",
            rival,
            aim=aim,
            better="more",
        )
    ours, theirs = (statistics.fmean(run.precision for run in measured[side][1]) for side in ("ours", "loop"))
    name = f"{tokens}: precision@10 on {PROTOCOL}, {epochs} epochs"
    yield Claim(name, ours, "PyTorch, label mode", theirs, aim=1, better="more")
    yield from _beside_mechanism(tokens, corpus, settings, quick)


def _beside_mechanism(tokens: str, corpus: Path, settings: TrainSettings, quick: bool) -> Iterator[Claim]:
    """CPU seconds and precision of both steps, one thread."""
    sides = {"ours": Stepped(settings), "mechanism": Stepped(settings, backend="torch")}
    measured = _rounds(sides, corpus, 2, (1,), 1 if quick else ROUNDS)
    ours, theirs = (_speeds(measured[side][1], "cpu") for side in sides)
    ratio = statistics.median(one / other for one, other in zip(ours, theirs, strict=True))
    rival, value = "the mechanism", statistics.median(theirs)
    name = f"{tokens}: training, one thread, titles/CPU-s"
    yield Claim(name, ratio * value, rival, value, aim=1, better="more")
    ours, theirs = (statistics.fmean(run.precision for run in measured[side][1]) for side in sides)
    name = f"{tokens}: precision@10 on {PROTOCOL}, 2 epochs"
    yield Claim(name, ours, rival, theirs, better=None)


def _to_quality(
    tokens: str, corpus: Path, settings: TrainSettings, fasttext: FastText, quick: bool
) -> Iterator[Claim]:
    """Seconds until ours is as good as fastText ever gets, beside fastText's."""
    try:
        theirs = call_apart(runs_of, fasttext, corpus, quick, 1, rival=True, threads=1)
    except ImportError as missing:
        print(f"{fasttext.name} is left out: {missing}", file=sys.stderr)
        return
    ours = call_apart(_warm_runs, Stepped(settings), corpus, quick, threads=1)
    wanted = REACHED * max(run.precision for run in theirs)
    for unit, seconds in (("wall", "seconds"), ("cpu", "CPU seconds")):
        first, reached = (
            min((getattr(run.spent, unit) for run in runs if run.precision >= wanted), default=float("inf"))
            for runs in (theirs, ours)
        )
        name = f"{tokens}: {seconds} to precision@10 of {wanted:.3f}"
        yield Claim(name, reached, fasttext.name, first, aim=0.1, better="less")


def _rounds(
    sides: Mapping[str, Rival], corpus: Path, epochs: int, threads: Sequence[int], rounds: int
) -> dict[str, dict[int, list[Run]]]:
    """Runs of each side with each number of threads, all sides in each round."""
    found = {side: {number: list[Run]() for number in threads} for side in sides}
    for seed in range(1, rounds + 1):
        for number in threads:
            for side, rival in sides.items():
                mine = isinstance(rival, Ours)
                spent = call_apart(_one, rival, corpus, epochs, seed, number, rival=not mine, threads=number)
                found[side][number].append(spent)
    return found


def _one(rival: Rival, corpus: Path, epochs: int, seed: int, threads: int) -> Run:
    """A run, after one that is not counted; called in its own process."""
    contest = Contest(corpus)
    rival.train(contest, 1, seed, threads)
    trained = rival.train(contest, epochs, seed, threads)
    precision = contest.scores(trained.vectors(), PROTOCOL, resamples=2)["precision_at_10"].value
    return Run(epochs, trained.spent, precision, len(contest.training) * epochs, threads)


def _warm_runs(rival: Rival, corpus: Path, quick: bool) -> list[Run]:
    """Runs of every length, after one that is not counted."""
    rival.train(Contest(corpus), 1, 1, 1)
    return runs_of(rival, corpus, quick, 1)


def _speeds(runs: Sequence[Run], unit: str) -> list[float]:
    return [run.titles / getattr(run.spent, unit) for run in runs]


def _without_sentences(corpus: Path) -> Path:
    """The corpus as it is without a sentence encoder."""
    for name in ("sentences", "descriptions"):
        (corpus / f"{name}.npy").unlink(missing_ok=True)
    return corpus


if __name__ == "__main__":
    sys.exit(run(measure_runners, __doc__ or ""))
