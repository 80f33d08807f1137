"""Time of a step of the rare-event memory beside a loop in torch over single queries."""

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.claims import Claim
from benchmarks.processes import call_apart
from tasks.train.memory import EMPTY, HitOrMiss, Memory

SLOTS, DIM, QUERIES, LABELS = 8192, 128, 1024, 64
AIM = 15.0  # ms per step, on two cores
MARGIN = 0.1
# noise around the centre of a label, with which nearly all, most, or few queries are hits
SPREADS = (0.5, 1.5, 4.0)


def draw(count: int, spread: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draws unit vectors around the centres of their labels; few labels have most vectors, as in a guide."""
    centres = F.normalize(torch.randn(LABELS, DIM, generator=torch.Generator().manual_seed(7)), dim=1)
    labels = (LABELS * torch.rand(count, generator=generator) ** 2).long()
    noise = torch.randn(count, DIM, generator=generator) * spread / DIM**0.5
    return F.normalize(centres[labels] + noise, dim=1), labels


def full_memory(spread: float) -> tuple[Memory, torch.Generator]:
    generator = torch.Generator().manual_seed(1)
    memory = Memory.empty(SLOTS, DIM)
    keys, values = draw(SLOTS, spread, generator)
    memory.keys.copy_(keys)
    memory.values.copy_(values)
    memory.ages.copy_(torch.randint(10 * SLOTS, (SLOTS,), generator=generator))
    return memory, generator


def ours(memory: Memory, queries: Tensor, labels: Tensor) -> Tensor:
    """Computes the margin loss and writes to the memory."""
    slots = memory.write_(queries, labels, HitOrMiss())
    counted = (slots.same != EMPTY) & (slots.other != EMPTY)
    away, towards = (slots.start[rows.clamp(min=0)] for rows in (slots.other, slots.same))
    return ((queries * (away - towards)).sum(1) + MARGIN).clamp(min=0).mul(counted).sum() / counted.sum()


def in_turn(memory: Memory, queries: Tensor, labels: Tensor) -> Tensor:
    """Computes the same in plain torch, one query after the other, without random noise of ages."""
    keys, values, ages, _, _ = memory
    scores, none = queries @ keys.clone().T, torch.tensor(-torch.inf)
    alike = values == labels[:, None]
    same, other = torch.where(alike, scores, none).amax(1), torch.where(alike, none, scores).amax(1)
    loss = (other - same + MARGIN).clamp(min=0).nan_to_num(posinf=0).mean()
    with torch.no_grad():
        for query, label in zip(queries, labels, strict=True):
            ages += 1
            slot = int((keys @ query).argmax())
            if values[slot] == label:
                keys[slot] = F.normalize(query + keys[slot], dim=0)
            else:
                slot = int(ages.argmax())
                keys[slot], values[slot] = query, label
            ages[slot] = 0
    return loss


def time_step(step: Callable[[Memory, Tensor, Tensor], Tensor], spread: float, repeats: int) -> list[float]:
    """Returns milliseconds of a step with gradients: median and minimum wall time, median CPU time."""
    memory, generator = full_memory(spread)
    taken, cpu = [], []
    for _ in range(repeats + 1):  # the first run compiles
        queries, labels = draw(QUERIES, spread, generator)
        queries.requires_grad_()
        begun, before = time.perf_counter(), time.process_time()
        step(memory, queries, labels).backward()
        taken.append((time.perf_counter() - begun) * 1e3)
        cpu.append((time.process_time() - before) * 1e3)
    return [statistics.median(taken[1:]), min(taken[1:]), statistics.median(cpu[1:])]


def steps(quick: bool) -> Iterator[Claim]:
    """Measures the time of a step for three distributions; the target applies to the second."""
    for spread in SPREADS[1:2] if quick else SPREADS:
        about = f"memory, {SLOTS:,} slots × {DIM}, {QUERIES:,} queries, spread {spread:g}, two threads"
        mine = call_apart(time_step, ours, spread, 5 if quick else 31, threads=2)
        theirs = call_apart(time_step, in_turn, spread, 2 if quick else 5, rival=True, threads=2)
        values: dict[str, Any] = {"value": mine[0], "better": "less"}
        yield Claim(f"{about}, ms a step", aim=AIM, **values)
        yield Claim(f"{about}, the fastest, ms a step", mine[1], better=None)
        rival: dict[str, Any] = {"rival": "torch, one query after the other", "rival_value": theirs[2]}
        yield Claim(f"{about}, CPU ms a step", mine[2], better="less", aim=0.5, **rival)


def claims(quick: bool) -> list[Claim]:
    """Measures all claims of this file."""
    return [*steps(quick)]
