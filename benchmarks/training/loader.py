"""Data loader beside a textbook Dataset with ``__getitem__`` and the default collate function.

A batch is 1,024 examples of 8 titles each, padded. The textbook Dataset stores a tensor per title, pads the
titles of an example in ``__getitem__``, and the DataLoader stacks them. Both are measured with 0, 1 and 2
workers, from the first batch to the last. The second part measures the share of the training time in which
the loop waits for data. The corpus consists of synthetic titles (benchmarks/text/titles.py).
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from benchmarks.claims import Claim, run
from benchmarks.processes import call_apart
from benchmarks.text.titles import publish_synthetic_guide, to_corpus
from benchmarks.training.padded import Padded, PaddedTitles
from storage.formats.corpus import open_corpus
from storage.home.workspace import Workspace
from tasks.loading.delivery import Delivery
from tasks.text.words import Words
from tasks.tokenize.settings import TokenizeSettings
from tasks.train.loop import Training
from tasks.train.settings import TrainSettings

EXAMPLES, EACH = 1024, 8
Clock = Callable[[], float]


class OurExamples:
    """Maps example numbers to a padded batch; only paths are sent to workers."""

    def __init__(self, corpus: Path, examples: Path) -> None:
        self.titles, self.examples = PaddedTitles(corpus), examples

    def __getitem__(self, numbers: np.ndarray) -> Padded:
        return self.titles[np.load(self.examples, mmap_mode="r")[numbers]]


class TextbookExamples(Dataset[tuple[Tensor, Tensor]]):
    """Returns one example, with titles padded to the longest title of the corpus.

    The default collate function can stack only equal shapes.
    """

    def __init__(self, corpus: Path, examples: Path) -> None:
        tokens = open_corpus(corpus).tokens
        self.titles = [torch.from_numpy(np.array(row, dtype=np.int64)) for row in tokens]
        self.examples = np.load(examples)
        self.longest = int(tokens.lengths.max())

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, number: int) -> tuple[Tensor, Tensor]:
        titles = [self.titles[row] for row in self.examples[number]]
        padded = torch.zeros(len(titles), self.longest, dtype=torch.int64)
        for place, title in enumerate(titles):
            padded[place, : len(title)] = title
        return padded, torch.tensor([len(title) for title in titles])


def measure_loader(quick: bool) -> Sequence[Claim]:
    """Measures all claims of this file."""
    torch.set_num_threads(1)
    claims: list[Claim] = []
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        guide = publish_synthetic_guide(home, 20_000 if quick else 100_000)
        words = Workspace(home).folder(
            to_corpus(home, guide, TokenizeSettings(tokenizer=Words(), context=()))
        )
        batches = 60 if quick else 200
        examples = home / "examples.npy"
        np.save(
            examples,
            np.random.default_rng(1).integers(0, len(open_corpus(words)), (batches * EXAMPLES, EACH)),
        )
        items = [np.arange(start, start + EXAMPLES) for start in range(0, batches * EXAMPLES, EXAMPLES)]
        claims += beside_the_textbook(words, examples, items, quick)
        claims += in_the_loop(
            Workspace(home).folder(to_corpus(home, guide, TokenizeSettings())), 2 if quick else 4
        )
    return claims


def beside_the_textbook(
    corpus: Path, examples: Path, items: Sequence[np.ndarray], quick: bool
) -> Iterator[Claim]:
    """Compares batches per second with 0, 1 and 2 workers; the best of three in a separate process each."""
    few = items[: 8 if quick else 20]
    for workers in (0, 1, 2):
        ours = call_apart(our_speed, corpus, examples, items, workers, threads=1)
        theirs = call_apart(textbook_speed, corpus, examples, len(few), workers, rival=True, threads=1)
        label = f"padded batches of 1,024 × 8 titles a second, {workers} worker{'s' if workers != 1 else ''}"
        yield Claim(label, ours, "textbook Dataset", theirs, aim=50)


def our_speed(corpus: Path, examples: Path, items: Sequence[np.ndarray], workers: int) -> float:
    """Returns batches per second of our loader."""
    delivery = Delivery(OurExamples(corpus, examples), workers=workers)
    return max(speed(delivery.deliver(items)) for _ in range(3))


def textbook_speed(corpus: Path, examples: Path, batches: int, workers: int) -> float:
    """Returns batches per second of a DataLoader of the textbook Dataset."""
    subset = torch.utils.data.Subset(TextbookExamples(corpus, examples), range(batches * EXAMPLES))
    # A spawned worker would get one file descriptor per tensor of the dataset: too many for a process.
    context = "fork" if workers else None
    loader = DataLoader(subset, batch_size=EXAMPLES, num_workers=workers, multiprocessing_context=context)
    return max(speed(iter(loader)) for _ in range(3))


def in_the_loop(corpus: Path, epochs: int) -> Iterator[Claim]:
    """Measures the training loop within an epoch.

    Yields the share of the time in which the loop waits for the next batch, and the CPU time of its process
    per token id meanwhile.
    """
    for workers in (0, 1, 2):
        training = Training(corpus, TrainSettings(epochs=epochs, workers=workers))
        wall, cpu = Waiting(time.perf_counter), Waiting(time.process_time)
        epoch = training.loader.epoch

        def timed(
            *arguments: Any, epoch: Callable[..., Any] = epoch, wall: Waiting = wall, cpu: Waiting = cpu
        ) -> tuple[int, Iterator[Any]]:
            count, loaded = epoch(*arguments)
            return count, wall.on(cpu.on(loaded))

        training.loader.epoch = timed  # type: ignore[method-assign]
        for _ in training.run():
            pass
        entries = open_corpus(corpus).tokens.take(open_corpus(corpus).training).offsets[-1] / len(
            open_corpus(corpus).training
        )
        aim = 1.8
        yield Claim(
            f"share of the training loop spent waiting for data, %, {workers} workers",
            100 * wall.share,
            aim=aim,
            better="less",
        )
        yield Claim(
            f"core time of the training process while it waits, ns a token id, {workers} workers",
            1e9 * cpu.each / (entries * wall.titles),
            better=None,
        )


class Waiting:
    """Measures the time between the request and the arrival of batches.

    The first batch of each epoch is omitted, because workers start and plans are made before it.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock, self.waited, self.worked, self.batches, self.shown = clock, 0.0, 0.0, 0, 0

    def on(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yields the batches and measures the waiting time."""
        yield next(batches)
        requested = self.clock()
        for batch in batches:
            had = self.clock()
            self.waited += had - requested
            self.batches += 1
            self.shown += len(batch.bags.offsets) - 1
            yield batch
            requested = self.clock()
            self.worked += requested - had

    @property
    def share(self) -> float:
        """Share of the time that was spent waiting."""
        return self.waited / (self.waited + self.worked)

    @property
    def each(self) -> float:
        """Mean waiting time per batch in seconds."""
        return self.waited / self.batches

    @property
    def titles(self) -> float:
        """Mean number of titles per batch."""
        return self.shown / self.batches


def speed(batches: Iterator[Any]) -> float:
    """Returns batches per second after the first batch."""
    next(batches)
    started = time.perf_counter()
    return sum(1 for _ in batches) / (time.perf_counter() - started)


if __name__ == "__main__":
    sys.exit(run(measure_loader, __doc__ or ""))
