"""Training beside rivals: throughput, seconds to a rival's quality, and growth with the number of titles.

Every rival reads the same training titles as the same tokens and trains vectors with the same number of
dimensions (100). A title counts once, as an anchor, for all systems. Each system runs in a separate process,
ours with our environment and a rival with the user's, with the number of threads (one or two) that is faster
in a short run. Wall and CPU seconds are reported; our CPU seconds include the thread that makes batches.
Claims:

1. throughput in label mode on words, with one and two threads, against every rival;
2. time to quality: seconds of training until precision@10 on unseen_title is 98 % of the rival's final one
   (its best over the numbers of epochs tried), ours over the rival's. Runs of each length are trained from
   the start, since the learning rate falls to zero within a run; seconds are medians of five (three where a
   run takes over two seconds, one where it takes over ten);
3. titles a second and memory at 10,000, 100,000 and 1,000,000 titles, and with --full at five million
   (synthetic: Zipf words, growing vocabulary).

The targets apply to the faster of the two loops in plain PyTorch, which uses label mode. If titles have three
or four tokens, our settings are those for short bags (SHORT_BAGS), and those of fastText are from its
tutorial for short texts (both: docs/log). StaticEmbedding trains 2,300 titles per second, so it is measured
with one and three epochs. This favours it in time to quality: the gain of further epochs would take it
minutes, and our training one epoch. A rival whose package is missing is reported and omitted. StarSpace has
no Python package and no row: measured separately on other titles, label mode with ten negatives took 5.3 CPU
s for three epochs of 24,320 titles, 13,800 titles per CPU second.
"""

import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.claims import Claim, guides, run
from benchmarks.processes import call_apart, measure_apart
from benchmarks.rivals.contest import DIM, Contest, Rival, Spent
from benchmarks.rivals.doc2vec import Doc2Vec
from benchmarks.rivals.fasttext import FastText
from benchmarks.rivals.ours import Ours
from benchmarks.rivals.plain import LabelMode, Plain
from benchmarks.rivals.static_embedding import StaticEmbedding
from benchmarks.stages import make_corpus
from benchmarks.training.synthetic import make_synthetic_corpus
from storage.formats.corpus import open_corpus
from tasks.optimizers import RowwiseAdagrad
from tasks.text.words import Words, WordsAndNgrams
from tasks.train.loop import Training
from tasks.train.objectives import Label
from tasks.train.settings import TrainSettings

PROTOCOL, REACHED = "unseen_title", 0.98
AIMS = {  # targets of seconds to quality, and of titles per second
    "fastText": (1 / 5, None),
    "fastText with its n-grams": (1 / 5, None),
    "PyTorch, label mode": (1 / 8, 3),
    "StaticEmbedding": (1 / 300, None),
}
REPEATS = ((10.0, 1), (2.0, 3), (0.0, 5))  # minimum seconds of a run, and its number of repeats
SHORT_BAGS = TrainSettings(
    dim=DIM,
    dropout=0.0,
    optimizer=RowwiseAdagrad(learning_rate=0.3),
    objective=Label(batch_size=1024, temperature=0.2),
)


@dataclass(frozen=True)
class Run:
    """Training runs of one length.

    Attributes:
        epochs: Epochs of each run.
        spent: Median wall and CPU seconds.
        precision: Mean precision@10 on unseen_title.
        titles: Titles that one run processes, with repeats.
        threads: Number of threads.
    """

    epochs: int
    spent: Spent
    precision: float
    titles: int
    threads: int


def measure_training(quick: bool) -> Sequence[Claim]:
    """Measures all claims of this file except those of --full."""
    claims: list[Claim] = []
    with tempfile.TemporaryDirectory() as folder:
        feeds = guides("ZA1") if quick else guides("UK1", "US1", "AU1", "ZA1")
        words = make_corpus(Path(folder) / "words", feeds, Words(), context=False)
        ngrams = make_corpus(Path(folder) / "ngrams", feeds, WordsAndNgrams(), context=False)
        fasttext, its_ngrams = (
            FastText("fastText", "tokens", epochs=(3, 5, 10, 25)),
            FastText("fastText with its n-grams", "words", longest_ngram=5, epochs=(3, 5, 10, 25)),
        )
        for threads, aim in ((1, 5e5), (2, 1e6)):
            run = call_apart(runs_of, Ours(SHORT_BAGS, epochs=(4,)), words, quick, threads, threads=threads)[
                0
            ]
            claims += _speeds(f"words, threads: {threads}: training", run, aim=aim)
        claims += _compare(
            "words",
            words,
            SHORT_BAGS,
            [fasttext, Plain(), LabelMode(), StaticEmbedding(epochs=(1, 3)), Doc2Vec()],
            quick,
        )
        claims += _compare(
            "words and n-grams",
            ngrams,
            TrainSettings(dim=DIM),
            [its_ngrams, Plain(epochs=(1, 2)), LabelMode(epochs=(1, 2, 4))],
            quick,
        )
        claims += _growth(Path(folder), (10_000, 100_000) if quick else (10_000, 100_000, 1_000_000))
    return claims


def measure_five_million() -> Sequence[Claim]:
    """Measures the growth up to five million titles."""
    with tempfile.TemporaryDirectory() as folder:
        return list(_growth(Path(folder), (10_000, 1_000_000, 5_000_000)))


def _compare(
    tokens: str, corpus: Path, settings: TrainSettings, rivals: Sequence[Rival], quick: bool
) -> list[Claim]:
    """Compares throughput and time to quality for one kind of tokens."""
    ours, claims = _better(Ours(settings), corpus, quick, rival_process=False), []
    for rival in rivals:
        try:
            theirs = _better(rival, corpus, quick, rival_process=True)
        except ImportError as missing:
            print(f"{rival.name} is left out: {missing}", file=sys.stderr)
            continue
        claims += _beside(tokens, rival.name, ours, theirs, *AIMS.get(rival.name, (None, None)))
    return claims


def _beside(
    tokens: str,
    rival: str,
    ours: Sequence[Run],
    theirs: Sequence[Run],
    to_quality: float | None,
    speed: float | None,
) -> Iterator[Claim]:
    """Makes the claims that compare our training with one rival."""
    wanted = REACHED * max(run.precision for run in theirs)
    first, reached = _first(theirs, wanted), _first(ours, wanted)
    epochs = (
        f"{reached.epochs if reached else 'no number of'} epochs, {rival} {first.epochs if first else '?'}"
    )
    about = f"{tokens}: %s to precision@10 of {wanted:.3f}, {epochs}"
    for unit, aim in (("wall", to_quality), ("cpu", None)):
        value, rival_value = (getattr(run.spent, unit) if run else math.inf for run in (reached, first))
        seconds = "seconds" if unit == "wall" else "CPU seconds"
        yield Claim(about % seconds, value, rival, rival_value, aim=aim, better="less" if aim else None)
    best, best_of_theirs = max(ours, key=_speed), max(theirs, key=_speed)
    yield from _speeds(
        f"{tokens}: training, threads: {best.threads} and {best_of_theirs.threads}",
        best,
        rival,
        best_of_theirs,
        speed,
    )


def _speeds(
    name: str, run: Run, rival: str = "", theirs: Run | None = None, aim: float | None = None
) -> Iterator[Claim]:
    """Makes the claims on titles per wall second and per CPU second."""
    for unit, per in (("wall", "s"), ("cpu", "CPU-s")):
        value, rival_value = (
            best_run and best_run.titles / getattr(best_run.spent, unit) for best_run in (run, theirs)
        )
        aim_of_unit = aim if unit == "wall" else None
        yield Claim(
            f"{name}, titles/{per}",
            value or 0,
            rival,
            rival_value,
            aim=aim_of_unit,
            better="more" if aim_of_unit else None,
        )


def _better(rival: Rival, corpus: Path, quick: bool, *, rival_process: bool) -> list[Run]:
    """Trains for every number of epochs, with the number of threads (one or two) that is faster."""
    trial = replace(rival, epochs=rival.epochs[:1])  # type: ignore[type-var]
    threads = max(
        (1, 2),
        key=lambda threads: _speed(
            call_apart(runs_of, trial, corpus, quick, threads, rival=rival_process, threads=threads)[0]
        ),
    )
    return call_apart(runs_of, rival, corpus, quick, threads, rival=rival_process, threads=threads)


def runs_of(rival: Rival, corpus: Path, quick: bool, threads: int) -> list[Run]:
    """Trains a rival for every number of epochs that it tries; called in a separate process."""
    contest, runs = Contest(corpus), []
    for epochs in rival.epochs[:2] if quick else rival.epochs:
        spent, precisions, repeats = [], [], 1
        while len(spent) < repeats:
            trained = rival.train(contest, epochs, len(spent) + 1, threads)
            spent.append(trained.spent)
            # short runs are scored for every seed
            if len(spent) == 1 or (sum(spent_time.wall for spent_time in spent) < 5 and not quick):
                precisions.append(
                    contest.scores(trained.vectors(), PROTOCOL, resamples=2)["precision_at_10"].value
                )
            repeats = (
                1
                if quick
                else next(
                    times
                    for longer, times in REPEATS
                    if statistics.median(spent_time.wall for spent_time in spent) >= longer
                )
            )
        median = Spent(*(statistics.median(kind) for kind in zip(*spent, strict=True)))
        runs.append(
            Run(epochs, median, statistics.fmean(precisions), len(contest.training) * epochs, threads)
        )
    return runs


def _speed(run: Run) -> float:
    return run.titles / run.spent.wall


def _first(runs: Sequence[Run], precision: float) -> Run | None:
    """Returns the fastest run whose precision@10 is at least ``precision``."""
    return min(
        (run for run in runs if run.precision >= precision), key=lambda run: run.spent.wall, default=None
    )


def _growth(folder: Path, sizes: Sequence[int]) -> Iterator[Claim]:
    """Compares titles per second of one epoch at each size with the smallest size, and measures memory."""
    smallest = 0.0
    for size in sizes:
        measured = measure_apart(_prepare_epoch, make_synthetic_corpus(folder / str(size), size, seed=1))
        smallest = smallest or measured.result
        yield Claim(
            f"synthetic, {size:,} titles: training, titles/s",
            measured.result,
            f"{sizes[0]:,} titles",
            smallest,
        )
        yield Claim(
            f"synthetic, {size:,} titles: memory above imports and corpus, MiB", measured.above, better=None
        )


def _prepare_epoch(corpus_folder: Path) -> Callable[[], float]:
    """Prepares one epoch over a corpus; the returned call returns titles per second."""
    training = Training(corpus_folder, replace(SHORT_BAGS, epochs=1))
    titles = len(open_corpus(corpus_folder).training)

    def epoch() -> float:
        started = time.perf_counter()
        list(training.run())
        return titles / (time.perf_counter() - started)

    return epoch


if __name__ == "__main__":
    sys.exit(run(measure_training, __doc__ or "", measure_five_million))
