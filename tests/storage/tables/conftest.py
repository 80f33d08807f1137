"""Schedules and runs for the tests of all tables."""

from collections.abc import Callable, Iterable
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from storage.tables import Offloaded, Resident, Table, as_section
from tasks.optimizers import Optimizer

TOKENS, DIM = 60, 5


def start(tokens: int = TOKENS, dim: int = DIM) -> Tensor:
    return torch.randn(tokens, dim, generator=torch.Generator().manual_seed(1))


def schedule(steps: int, seed: int, tokens: int = TOKENS, largest: int = 40) -> list[Tensor]:
    """Distinct ids of each step: Zipf draws with duplicates taken out, sometimes none, sometimes nearly all
    rows."""
    generator = torch.Generator().manual_seed(seed)
    weights = 1.0 / torch.arange(1, tokens + 1)
    sizes = torch.randint(0, largest, (steps,), generator=generator).tolist()
    return [
        torch.multinomial(weights, size, replacement=True, generator=generator).unique()
        if size
        else torch.zeros(0, dtype=torch.int64)
        for size in sizes
    ]


def drive(
    table: Table,
    optimizer: Optimizer,
    batches: Iterable[Tensor],
    first: int = 0,
    between: Callable[[int], None] = lambda step: None,
) -> None:
    """Performs steps whose gradients depend on the rows, so that a stale row changes all later values."""
    for step, ids in enumerate(table.prefetch(batches, lambda ids: ids), start=first + 1):
        rows, state = table.gather(ids)
        noise = torch.randn(len(ids), rows.shape[1], generator=torch.Generator().manual_seed(step)).to(
            rows.device
        )
        rate = (0.5 + ids.unsqueeze(1).float() % 3).to(rows.device) * 0.05
        optimizer.update_(rows, rows * 0.3 + noise, state, rate, step)
        between(step)
        table.write_back(ids, rows, state)


def tensors(table: Table) -> dict[str, Tensor]:
    """Returns the tensors that a checkpoint of the table would contain."""
    return {
        name: torch.cat(
            [piece.cpu().clone() for piece in part.pieces()] or [torch.zeros(part.shape, dtype=part.dtype)]
        )
        for name, part in table.sections().items()
    }


def resident(optimizer: Optimizer, tokens: int = TOKENS) -> Resident:
    return Resident(start(tokens), optimizer.initial_state(start(tokens)))


def offloaded(
    optimizer: Optimizer,
    cache_rows: int = 25,
    tokens: int = TOKENS,
    kind: type[Offloaded] = Offloaded,
    **settings,
) -> Offloaded:
    return kind(as_section(start(tokens)), optimizer, cache_rows=cache_rows, **settings)


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return set(first) == set(second) and all(
        torch.equal(tensor, second[name]) for name, tensor in first.items()
    )


@pytest.fixture
def world() -> SimpleNamespace:
    return SimpleNamespace(
        TOKENS=TOKENS,
        start=start,
        schedule=schedule,
        drive=drive,
        tensors=tensors,
        resident=resident,
        offloaded=offloaded,
        same=same,
    )
