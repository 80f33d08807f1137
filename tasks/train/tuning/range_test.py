"""Suggests an initial learning rate by a learning-rate range test, which is one short training.

The rate grows exponentially from step to step, by DECADES decades below and above the rate of the entry. The
loss is smoothed by a bias-corrected exponential moving average. The suggestion is the rate at which the
smoothed loss falls most steeply over the logarithm of the rate; a rate at which it rises is too large.

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

EPOCHS, DECADES, SMOOTHING = 2, 2.0, 0.7
MAX_LOSS_RATIO = 2.0  # the test ends when the smoothed loss exceeds its minimum times this ratio


@dataclass(frozen=True)
class RangeTest:
    """Result of a learning-rate range test of one optimizer with vectors of one size."""

    name: str  # name of the optimizer
    size: int  # dimensions of vectors
    rate: float  # default learning rate of the optimizer
    rates: tuple[float, ...]  # learning rate of each step
    losses: tuple[float, ...]  # smoothed loss of each step
    suggested: float  # suggested learning rate


def range_test(corpus: Path, entry: Entry) -> RangeTest:
    """Runs the range test of a candidate (from ``Entry.for_scoring``) on a Corpus folder.

    The test ends after EPOCHS, or when the loss exceeds MAX_LOSS_RATIO times its minimum.
    """
    training = Training(corpus, entry.settings)
    rates, losses, average, lowest = [], [], 0.0, math.inf
    for epoch in range(EPOCHS):
        for count, batch in training.batches(epoch):
            fraction = len(rates) / max(1, EPOCHS * count - 1)
            factor = 10 ** (DECADES * (2 * fraction - 1))
            try:
                loss = float(training.trainer.step(batch, factor))
            except NonFiniteGradient:
                loss = math.inf
            average = SMOOTHING * average + (1 - SMOOTHING) * loss
            smoothed = average / (1 - SMOOTHING ** (len(rates) + 1))
            if not smoothed < MAX_LOSS_RATIO * lowest and len(rates) > 2:
                return _result(entry, rates, losses)
            rates.append(entry.rate * factor)
            losses.append(smoothed)
            lowest = min(lowest, smoothed)
    return _result(entry, rates, losses)


def _result(entry: Entry, rates: list[float], losses: list[float]) -> RangeTest:
    size = entry.settings.dim
    return RangeTest(entry.name, size, entry.rate, tuple(rates), tuple(losses), suggest_rate(rates, losses))


def suggest_rate(rates: list[float], losses: list[float]) -> float:
    """Returns the learning rate at which the loss falls most steeply before its minimum."""
    end = int(np.argmin(losses)) + 1
    if end < 3:
        return rates[0]
    return rates[int(np.argmin(np.gradient(losses[:end], np.log(rates[:end]))))]


def range_table_markdown(tests: list[RangeTest]) -> str:
    """Renders the results of range tests as a Markdown table."""
    lines = ["| size | optimizer | default rate | suggested rate |", "| ---: | --- | ---: | ---: |"]
    lines += [f"| {test.size} | {test.name} | {test.rate:.3g} | {test.suggested:.3g} |" for test in tests]
    return "\n".join(lines) + "\n"
