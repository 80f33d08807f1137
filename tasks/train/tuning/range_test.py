"""The learning-rate range test: which rate to begin with, from one short training.

The rate rises exponentially from step to step, over as many decades on both sides of the optimizer's own
rate. The loss is smoothed by an exponential average without the bias of its start. Suggested is the rate at
which the smoothed loss falls most steeply over the logarithm of the rate; where it begins to rise is too far.

Smith. Cyclical Learning Rates for Training Neural Networks. WACV 2017. https://arxiv.org/abs/1506.01186,
section 3.3; Gugger (fastai) for smoothing and the steepest slope.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tasks.optimizers.parameter_groups import NonFiniteGradient
from tasks.train.loop import Training
from tasks.train.tuning.entries import Entry

EPOCHS, DECADES, SMOOTHING, RISEN = 2, 2.0, 0.7, 2.0


@dataclass(frozen=True)
class RangeTest:
    """A range test of one optimizer at one size."""

    name: str  # of the entry
    size: int  # dimensions
    own: float  # the rate that the entry has
    rates: tuple[float, ...]  # one for each step
    losses: tuple[float, ...]  # smoothed
    suggested: float


def range_test(corpus: Path, entry: Entry) -> RangeTest:
    """Tests an entry (``Entry.scored``) on a Corpus folder, as far as the loss has not risen far."""
    training = Training(corpus, entry.settings)
    rates, losses, average, lowest = [], [], 0.0, math.inf
    for epoch in range(EPOCHS):
        for count, batch in training.batches(epoch):
            done = len(rates) / max(1, EPOCHS * count - 1)
            factor = 10 ** (DECADES * (2 * done - 1))
            try:
                loss = float(training.trainer.step(batch, factor))
            except NonFiniteGradient:
                loss = math.inf
            average = SMOOTHING * average + (1 - SMOOTHING) * loss
            smoothed = average / (1 - SMOOTHING ** (len(rates) + 1))
            if not smoothed < RISEN * lowest and len(rates) > 2:
                return _result(entry, rates, losses)
            rates.append(entry.rate * factor)
            losses.append(smoothed)
            lowest = min(lowest, smoothed)
    return _result(entry, rates, losses)


def _result(entry: Entry, rates: list[float], losses: list[float]) -> RangeTest:
    size = entry.settings.dim
    return RangeTest(entry.name, size, entry.rate, tuple(rates), tuple(losses), suggest(rates, losses))


def suggest(rates: list[float], losses: list[float]) -> float:
    """The rate of the steepest fall up to the lowest loss; of fewer than three steps the first rate."""
    end = int(np.argmin(losses)) + 1
    if end < 3:
        return rates[0]
    return rates[int(np.argmin(np.gradient(losses[:end], np.log(rates[:end]))))]


def table_markdown(tests: list[RangeTest]) -> str:
    """A row for each test."""
    lines = ["| size | optimizer | own rate | suggested by the range test |", "| ---: | --- | ---: | ---: |"]
    lines += [f"| {test.size} | {test.name} | {test.own:.3g} | {test.suggested:.3g} |" for test in tests]
    return "\n".join(lines) + "\n"
