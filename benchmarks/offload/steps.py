"""Training steps of the offload benchmarks: triplets of bags of four tokens, drawn by Zipf's law."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from storage.tables import RowOptimizer, Table
from tasks.encoder import Bag
from tasks.encoder.bags import Bags, encode_bags

TOKENS_A_TITLE, MARGIN, DIM = 4, 0.2, 128
ENCODER = Bag()


@dataclass(frozen=True)
class Measured:
    """Seconds of each timed step, and the losses of all steps."""

    seconds: np.ndarray
    losses: np.ndarray

    @property
    def median(self) -> float:
        """Median of the seconds."""
        return float(np.median(self.seconds))


def zipf(rows: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draws rows with probability proportional to 1 / rank: int64 (size,); row 0 is the most frequent."""
    return np.minimum(np.exp(rng.random(size) * np.log(rows + 1)).astype(np.int64) - 1, rows - 1)


def tenth(rows: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draws 99 of 100 rows by Zipf's law from the first tenth of the rows, and one uniformly from all."""
    draws = zipf(rows // 10, size, rng)
    stray = rng.random(size) < 0.01
    draws[stray] = rng.integers(0, rows, int(stray.sum()))
    return draws


def batches(
    draw: Callable[[int, int, np.random.Generator], np.ndarray],
    rows: int,
    tokens: int,
    count: int,
    seed: int = 0,
) -> list[Bags]:
    """Makes batches of ``tokens`` tokens in bags, before the measurement."""
    rng, made = np.random.default_rng(seed), []
    titles = tokens // TOKENS_A_TITLE // 3 * 3
    owner = torch.arange(titles).repeat_interleave(TOKENS_A_TITLE)
    for _ in range(count):
        ids, places = np.unique(draw(rows, titles * TOKENS_A_TITLE, rng), return_inverse=True)
        offsets = torch.arange(0, titles * TOKENS_A_TITLE + 1, TOKENS_A_TITLE)
        made.append(
            Bags(
                torch.from_numpy(ids),
                torch.from_numpy(places),
                torch.zeros(len(owner), dtype=torch.int64),
                owner,
                offsets,
                torch.zeros(titles, 0),
            )
        )
    return made


def triplet_loss(vectors: Tensor) -> Tensor:
    """Returns the loss of a batch whose thirds are anchors, positives and negatives."""
    anchor, positive, negative = vectors.view(3, -1, vectors.shape[1])
    return (MARGIN - (anchor * positive).sum(1) + (anchor * negative).sum(1)).clamp(min=0).mean()


def step(table: Table, rule: RowOptimizer, bags: Bags, number: int) -> Tensor:
    """Runs one triplet step, in which the thirds of the batch are anchors, positives and negatives.

    The loss stays on the device.
    """
    rows, state = table.gather(bags.ids)
    rows.requires_grad_()
    loss = triplet_loss(encode_bags(ENCODER, rows, bags))
    (grad,) = torch.autograd.grad(loss, rows)
    with torch.no_grad():
        rows = rows.detach()
        rule.update_(rows, grad, state, rows.new_full((len(rows), 1), rule.learning_rate), number)
        table.write_back(bags.ids, rows, state)
    return loss.detach()


def train(
    table: Table, rule: RowOptimizer, bags: Sequence[Bags], device: torch.device, warm: int = 2
) -> Measured:
    """Trains on all batches once; the first ``warm`` steps are not timed."""
    prefetched = enumerate(table.prefetch(bags, lambda batch: batch.ids), start=1)
    return timed((step(table, rule, batch.to(device), number) for number, batch in prefetched), device, warm)


def timed(steps: Iterable[Tensor], device: torch.device, warm: int) -> Measured:
    """Times the steps that yield these losses, except for the first ``warm`` steps."""
    losses, marks = [], []
    for loss in steps:
        losses.append(loss)
        marks.append(_mark(device))
    return Measured(np.diff(list(_seconds(marks, device)))[warm:], torch.stack(losses).cpu().numpy())


def _mark(device: torch.device) -> Any:
    """Returns the current time; on a GPU, an event in its stream, which does not block."""
    if device.type == "cpu":
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def _seconds(marks: Sequence[Any], device: torch.device) -> Iterator[float]:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    for mark in marks:
        yield mark if isinstance(mark, float) else marks[0].elapsed_time(mark) / 1000
