"""Training alone, imports excluded: how fast it is, how soon it is as good as a rival ever gets, and how its cost grows.

Every rival reads the same training titles as the same tokens and learns the same number of dimensions (100). A title
counts once, as an anchor, in all. Claims:

1. throughput in label mode on words, with one thread and with two, and against every rival;
2. time to quality: seconds of training until precision@10 on unseen_title is 98 % of the rival's final one (its best
   over the numbers of epochs tried), ours over the rival's. Runs of each length are trained from the start, since the
   learning rate falls to zero within a run; seconds are medians of five (three where a run takes over two seconds, one
   where it takes over ten);
3. titles a second and memory at 10,000, 100,000 and 1,000,000 titles (synthetic: Zipf words, growing vocabulary).

Ours is trained with the settings for short bags (SHORT_BAGS) where a title has three or four tokens, as fastText is with
its tutorial's for short texts (both: docs/LOG.md). StaticEmbedding trains 2,300 titles a second: it is tried with one and three
epochs. That favours it in time to quality: what more epochs would win takes it minutes, and us an epoch. A rival whose
package is missing is named on standard error and left out.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks._apart import measure_apart
from benchmarks._rivals.contest import DIM, Contest, Rival
from benchmarks._rivals.doc2vec import Doc2Vec
from benchmarks._rivals.fasttext import FastText
from benchmarks._rivals.ours import Ours
from benchmarks._rivals.plain import Plain
from benchmarks._rivals.static_embedding import StaticEmbedding
from benchmarks._synthetic import make_synthetic_corpus
from benchmarks.claims import Claim, guides, run
from benchmarks.road import make_corpus
from tasks.preprocess.corpus import open_corpus
from tasks.tokenize.words import Words, WordsAndNgrams
from tasks.train.loop import Training
from tasks.train.objectives import Label
from tasks.train.rules import RowwiseAdagrad
from tasks.train.settings import TrainSettings

PROTOCOL, REACHED = "unseen_title", 0.98
REPEATS = ((10.0, 1), (2.0, 3), (0.0, 5))  # runs longer than so many seconds, and how often they are repeated
SHORT_BAGS = TrainSettings(dim=DIM, dropout=0.0, rule=RowwiseAdagrad(learning_rate=0.3), objective=Label(batch=1024, temperature=0.2))


@dataclass(frozen=True)
class Run:
    """Training runs of one length.

    Attributes:
        epochs: Of each.
        seconds: Median.
        precision: Mean precision@10 on unseen_title.
        titles_per_second: Of the median run.
    """

    epochs: int
    seconds: float
    precision: float
    titles_per_second: float


def measure_training(quick: bool) -> Sequence[Claim]:
    """All claims of this file."""
    claims: list[Claim] = []
    with tempfile.TemporaryDirectory() as folder:
        feeds = guides("ZA1") if quick else guides("UK1", "US1", "AU1", "ZA1")
        words = Contest(make_corpus(Path(folder) / "words", feeds, Words(), context=False))
        ngrams = Contest(make_corpus(Path(folder) / "ngrams", feeds, WordsAndNgrams(), context=False))
        fasttext, its_ngrams = FastText("fastText", "tokens", epochs=(3, 5, 10, 25)), FastText("fastText with its n-grams", "words", longest_ngram=5, epochs=(3, 5, 10, 25))
        on_words: list[tuple[Rival, float | None]] = [(fasttext, 1 / 5), (Plain(), 1 / 8), (StaticEmbedding(epochs=(1, 3)), 1 / 300), (Doc2Vec(), None)]
        on_ngrams: list[tuple[Rival, float | None]] = [(its_ngrams, 1 / 5), (Plain(epochs=(1, 2, 4)), 1 / 8)]
        claims += _throughput(words, ((1, 5e5), (2, 1e6)), 1 if quick else 5)
        claims += _compare("words", words, SHORT_BAGS, on_words, quick)
        claims += _compare("words and n-grams", ngrams, TrainSettings(dim=DIM), on_ngrams, quick)
        claims += _growth(Path(folder), (10_000, 100_000) if quick else (10_000, 100_000, 1_000_000))
    return claims


def _throughput(contest: Contest, aims: Sequence[tuple[int, float]], repeats: int) -> Iterator[Claim]:
    """Titles a second in label mode, by threads; batches are made by one thread more."""
    for threads, aim in aims:
        ours = Ours(replace(SHORT_BAGS, threads=threads))
        seconds = statistics.median(ours.train(contest, 4, seed=1).seconds for _ in range(repeats))
        yield Claim(name=f"words, threads: {threads}: training, titles/s", value=len(contest.training) * 4 / seconds, aim=aim)


def _compare(tokens: str, contest: Contest, settings: TrainSettings, rivals: Sequence[tuple[Rival, float | None]], quick: bool) -> Iterator[Claim]:
    """Throughput and time to quality on one kind of tokens."""
    ours = list(_runs(Ours(settings), contest, quick))
    for rival, aim in rivals:
        try:
            theirs = list(_runs(rival, contest, quick))
        except ImportError as missing:
            print(f"{rival.name} is left out: {missing}", file=sys.stderr)
            continue
        final = max(run.precision for run in theirs)
        first, reached = _first(theirs, REACHED * final), _first(ours, REACHED * final)
        seconds = reached.seconds if reached else math.inf
        wanted = f"{REACHED * final:.3f}, {reached.epochs if reached else 'no number of'} epochs, {rival.name} {first.epochs if first else '?'}"
        name, theirs_seconds = f"{tokens}: seconds to precision@10 of {wanted}", first.seconds if first else None
        yield Claim(name=name, value=seconds, rival=rival.name, rival_value=theirs_seconds, aim=aim, better="less" if aim else None)
        throughput = max(run.titles_per_second for run in ours), max(run.titles_per_second for run in theirs)
        yield Claim(name=f"{tokens}: training, titles/s", value=throughput[0], rival=rival.name, rival_value=throughput[1], aim=3 if isinstance(rival, Plain) else None)


def _runs(rival: Rival, contest: Contest, quick: bool) -> Iterator[Run]:
    """Runs of every length that the rival tries."""
    for epochs in rival.epochs[:2] if quick else rival.epochs:
        seconds, precisions, repeats = [], [], 1
        while len(seconds) < repeats:
            trained = rival.train(contest, epochs, seed=len(seconds) + 1)
            seconds.append(trained.seconds)
            if len(seconds) == 1 or (sum(seconds) < 5 and not quick):  # what is cheap is judged over its seeds
                precisions.append(contest.scores(trained.vectors(), PROTOCOL, resamples=2)["precision_at_10"].value)
            repeats = 1 if quick else next(times for longer, times in REPEATS if statistics.median(seconds) >= longer)
        median = statistics.median(seconds)
        yield Run(epochs, median, statistics.fmean(precisions), len(contest.training) * epochs / median)


def _first(runs: Sequence[Run], precision: float) -> Run | None:
    """The quickest run that is good enough."""
    return min((run for run in runs if run.precision >= precision), key=lambda run: run.seconds, default=None)


def _growth(folder: Path, sizes: Sequence[int]) -> Iterator[Claim]:
    """Titles a second of one epoch, by the number of titles, against the smallest; memory of the training process."""
    smallest = 0.0
    for size in sizes:
        measured = measure_apart(_prepare_epoch, make_synthetic_corpus(folder / str(size), size, seed=1))
        smallest = smallest or measured.result
        yield Claim(name=f"synthetic, {size:,} titles: training, titles/s", value=measured.result, rival=f"{sizes[0]:,} titles", rival_value=smallest)
        yield Claim(name=f"synthetic, {size:,} titles: memory above imports and corpus, MiB", value=measured.above, better=None)


def _prepare_epoch(corpus_folder: Path) -> Callable[[], float]:
    """One epoch over a corpus, as a call that gives titles a second."""
    training = Training(corpus_folder, replace(SHORT_BAGS, epochs=1))
    titles = len(open_corpus(corpus_folder).training)

    def epoch() -> float:
        started = time.perf_counter()
        list(training.run())
        return titles / (time.perf_counter() - started)

    return epoch


if __name__ == "__main__":
    sys.exit(run(measure_training, __doc__ or ""))
