"""Roofline of the compiled training step: how near it is to the limits of one core.

FLOPs and bytes of a step are counted, and divided by the FLOPs and bytes per second that the same core
reaches in a large matrix product and in a copy of the table, measured between the steps. A step takes at
least the larger of both quotients. Counted are the three products of titles with labels, the two of sentence
features with their layer, and the sums of rows and gradients (a multiplication and an addition each), and the
bytes of all distinct rows of a batch, which are read twice and written once. Optimizer state, softmax,
normalisation and the bags, which the loader makes, are not counted, so no implementation reaches the limit.
"""

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from benchmarks.claims import Claim, guides, run
from benchmarks.stages import make_corpus
from benchmarks.timing import in_turn
from benchmarks.training.training import SHORT_BAGS
from tasks.loading.loader import Batch
from tasks.text.words import Words, WordsAndNgrams
from tasks.train.loop import Training
from tasks.train.settings import TrainSettings

SQUARE = 1024  # rows and columns of the large matrix product


def measure_roofline(quick: bool) -> Sequence[Claim]:
    """Measures all claims of this file."""
    torch.set_num_threads(1)
    feeds = guides("ZA1") if quick else guides("UK1", "US1", "AU1", "ZA1")
    claims: list[Claim] = []
    with tempfile.TemporaryDirectory() as folder:
        words = make_corpus(Path(folder) / "words", feeds, Words(), context=False)
        claims += _claims("words", words, SHORT_BAGS, 3 if quick else 15)
        ngrams = make_corpus(Path(folder) / "ngrams", feeds, WordsAndNgrams(), context=False)
        claims += _claims("words and n-grams", ngrams, TrainSettings(dim=SHORT_BAGS.dim), 3 if quick else 15)
    return claims


def _claims(name: str, corpus: Path, settings: TrainSettings, repeats: int) -> Iterator[Claim]:
    training = Training(corpus, replace(settings, backend="compiled", epochs=1, threads=1, workers=0))
    trainer, batches = training.trainer, [batch for _, batch in training.batches(0)]
    labels, dim = trainer.dense.parameters["labels"].shape
    features = batches[0].bags.features.shape[1]
    table = next(iter(trainer.table.sections().values())).tensor()
    copied, left, right = torch.empty_like(table), torch.randn(SQUARE, SQUARE), torch.randn(SQUARE, SQUARE)
    for batch in batches[:3]:
        trainer.step(batch, 1.0)  # loads the machine code
    seconds = in_turn(
        {
            "steps": lambda: [trainer.step(batch, 1.0) for batch in batches],
            "products": lambda: _products(batches, labels, dim),
            "large product": lambda: torch.mm(left, right),
            "copy": lambda: copied.copy_(table),
        },
        repeats,
        clock=time.thread_time,
    )
    titles = sum(len(batch.bags.offsets) - 1 for batch in batches)
    entries = sum(len(batch.bags.tokens) for batch in batches)
    rows = sum(len(batch.bags.ids) for batch in batches)
    flops = (6 * labels + 4 * features) * dim * titles + 4 * dim * entries
    transferred = 3 * 4 * dim * rows
    peak, bandwidth = 2 * SQUARE**3 / seconds["large product"], 2 * table.nbytes / seconds["copy"]
    limit = max(flops / peak, transferred / bandwidth)
    micro = 1e6 / titles
    sizes = f"{entries / titles:.1f} tokens, {labels} labels, {features} features"
    yield Claim(f"{name}: CPU µs of a step per title, {sizes}", seconds["steps"] * micro, better=None)
    yield Claim(f"{name}: FLOPs per title", flops / titles, better=None)
    yield Claim(f"{name}: bytes per title", transferred / titles, better=None)
    yield Claim(f"{name}: measured GFLOP/s", peak / 1e9, better=None)
    yield Claim(f"{name}: measured GB/s", bandwidth / 1e9, better=None)
    yield Claim(f"{name}: µs per title at the limit", limit * micro, better=None)
    yield Claim(f"{name}: share of the limit", limit / seconds["steps"], better=None)
    yield Claim(
        f"{name}: share of the products in a step", seconds["products"] / seconds["steps"], better=None
    )


def _products(batches: Sequence[Batch], labels: int, dim: int) -> None:
    """Computes the products of each step: image of the features, cosines, and the gradients of both."""
    units = torch.ones(labels, dim)
    layer = torch.ones(dim, batches[0].bags.features.shape[1])
    for batch in batches:
        vectors = torch.mm(batch.bags.features, layer.T)
        torch.mm(vectors.T, batch.bags.features)
        cosines = torch.mm(vectors, units.T)
        torch.mm(cosines.T, vectors)
        torch.mm(cosines, units)


if __name__ == "__main__":
    sys.exit(run(measure_roofline, __doc__ or ""))
