"""Steps over an offloaded table on a GPU, beside the resident table and other libraries."""

import statistics
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Any, get_args

import torch
from torch import Tensor

from benchmarks.claims import Claim
from benchmarks.offload.libraries import embedding_bag, fbgemm, train_library
from benchmarks.offload.steps import DIM, Measured, batches, train, zipf
from benchmarks.offload.transfers import GPU
from storage.tables import (
    Offloaded,
    Resident,
    RowOptimizer,
    Section,
    Table,
    TransferKind,
    as_section,
    random_rows,
)
from tasks.encoder.bags import Bags
from tasks.optimizers import Adam, Optimizer, RowwiseAdagrad

BATCHES, REPEATS, ROUNDS = 24, 4, 3  # batches; repetitions of all batches in a round; alternating rounds
RULED = 20_000, 8192, 30  # rows, tokens and steps of the comparison of optimizers


def every_rule() -> Iterator[Claim]:
    """Finds optimizers whose table, with 5 % cached, is not bitwise equal to the resident one after the steps
    of RULED.
    """
    differ, rows = 0, RULED[0]
    start = random_rows(rows, DIM, 0.1, 1)
    for kind in get_args(Optimizer):
        resident, cached = map(_bytes, _both(kind(), start, rows // 20))
        differ += not torch.equal(resident, cached)
    name = f"rules of {len(get_args(Optimizer))} that differ from resident"
    yield Claim(name, differ, aim=0, better="less")


def _bytes(table: Table) -> Tensor:
    """Returns all rows and states of a table on the CPU."""
    sections = (section for _, section in sorted(table.sections().items()))
    return torch.cat([piece.cpu().flatten() for section in sections for piece in section.pieces()])


def _both(rule: RowOptimizer, start: Section, cache_rows: int) -> list[Table]:
    tables: list[Table] = [_resident(start, rule), Offloaded(start, rule, device=GPU, cache_rows=cache_rows)]
    for table in tables:
        train(table, rule, batches(zipf, *RULED), GPU)
    return tables


def _resident(start: Section, rule: RowOptimizer) -> Resident:
    rows = start.tensor(GPU)
    return Resident(rows, rule.initial_state(rows))


class Contest:
    """Steps over a table of ``rows`` rows; initial rows, batches and resident steps are computed once."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self._bags: dict[int, list[Bags]] = {}
        self._seconds: dict[tuple[str, int], float] = {}  # per step, 5 % cached, by optimizer and tokens

    @cached_property
    def start(self) -> Section:
        """Returns the initial rows, in memory."""
        return as_section(random_rows(self.rows, DIM, 0.1, 1).tensor())

    def bags(self, tokens: int) -> list[Bags]:
        """Returns BATCHES batches of ``tokens`` tokens, in pinned memory."""
        if tokens not in self._bags:
            made = batches(zipf, self.rows, tokens, BATCHES)
            pinned = (Bags(*(tensor.pin_memory() for tensor in batch)) for batch in made)
            self._bags[tokens] = list(pinned) if GPU.type == "cuda" else made
        return self._bags[tokens]

    def resident(self, rule: Any) -> Resident | None:
        """Returns a new table that is completely on the GPU; None if it does not fit."""
        copies = 1 + len(rule.initial_state(torch.zeros(1, DIM)))
        if self.rows * DIM * 4 * copies > 0.8 * torch.cuda.mem_get_info()[0]:
            return None
        return _resident(self.start, rule)

    def ours(self, rule: Any, tokens: int, share: float, transfer: TransferKind = "auto") -> Iterator[Claim]:
        """Compares steps with a share of the rows cached with the resident table; losses must be equal.

        The tables train on the same batches in alternating rounds; the first repetition is not timed.
        """
        bags, resident = self.bags(tokens), self.resident(rule)
        # at least the rows of the prefetched batches
        cache_rows = max(int(share * self.rows), 3 * len(bags[0].ids))
        offloaded = Offloaded(
            self.start, rule, device=GPU, cache_rows=cache_rows, transfer=transfer, batch=bags[0].ids
        )
        tables = [offloaded, resident] if resident else [offloaded]
        rounds = [
            [train(table, rule, bags * REPEATS, GPU, warm=BATCHES) for table in tables] for _ in range(ROUNDS)
        ]
        ours, *rival = (statistics.median(each.median for each in runs) for runs in zip(*rounds, strict=True))
        if (share, transfer) == (0.05, "auto"):
            self._seconds[rule.name, tokens] = ours
        aim = 0.95 if isinstance(rule, RowwiseAdagrad) else 0.9
        name = f"{rule.name}, {self.rows:,} rows, {tokens:,} tokens, {100 * share:g} % cached"
        name += "" if transfer == "auto" else f", {transfer}"
        yield Claim(
            f"{name}, tokens/s",
            tokens / ours,
            "resident" if rival else "",
            tokens / rival[0] if rival else None,
            aim=aim if rival and (share, tokens, transfer) == (0.05, 98_304, "auto") else None,
        )
        if rival:
            differ = sum(float((one.losses != other.losses).sum()) for one, other in rounds)
            yield Claim(f"{name}, losses that differ", differ, aim=0, better="less")

    def speedtorch(self, tokens: int) -> Iterator[Claim]:
        """Compares Adam by the mechanism of SpeedTorch with ours, if ours was measured."""
        steps = _speedtorch(self.start, self.bags(tokens)[:8])
        yield self._other("SpeedTorch's way", "adam", tokens, steps, aim=10)

    def sparse_adam(self, tokens: int) -> Iterator[Claim]:
        """Compares nn.EmbeddingBag and SparseAdam of torch with ours, if ours was measured."""
        table = embedding_bag(self.start, partial(torch.optim.SparseAdam, lr=0.01), GPU)
        steps = train_library(table, self.bags(tokens), GPU, warm=6)
        yield self._other("nn.EmbeddingBag, SparseAdam", "adam", tokens, steps)

    def fbgemm(self, rule: Any, tokens: int) -> Iterator[Claim]:
        """Compares FBGEMM's table in managed memory, with 5 % of its rows cached on the GPU, with ours."""
        table = fbgemm(self.start, rule, GPU, 0.05)
        steps = train_library(table, self.bags(tokens), GPU, warm=6)
        yield self._other("FBGEMM, UVM_CACHING", rule.name, tokens, steps)

    def _other(self, name: str, rule: str, tokens: int, other: Measured, aim: float | None = None) -> Claim:
        about = f"{rule}, {self.rows:,} rows, {tokens:,} tokens"
        if (seconds := self._seconds.get((rule, tokens))) is None:
            return Claim(f"{about}, {name}, tokens/s", tokens / other.median, better=None)
        return Claim(f"{about}, 5 % cached, tokens/s", tokens / seconds, name, tokens / other.median, aim=aim)


def _speedtorch(start: Section, bags: Sequence[Bags]) -> Measured:
    """Measures the mechanism of SpeedTorch with torch only.

    Rows and both moments are pinned, and copied to the GPU and back in each step; each copy is waited for.
    """
    rule = Adam()
    rows = torch.cat(list(start.pieces())).pin_memory()
    state = {name: torch.zeros_like(rows).pin_memory() for name in rule.initial_state(rows[:1])}

    class Pinned:
        def prefetch(self, batches, ids):
            return batches

        def gather(self, ids: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
            where = ids.cpu()
            return rows[where].to(GPU), {name: tensor[where].to(GPU) for name, tensor in state.items()}

        def write_back(self, ids: Tensor, values: Tensor, states: dict[str, Tensor]) -> None:
            where = ids.cpu()
            rows[where] = values.cpu()
            for name, tensor in states.items():
                state[name][where] = tensor.cpu()

    return train(Pinned(), rule, bags, GPU)  # pyright: ignore[reportArgumentType]
