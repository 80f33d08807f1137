"""A table larger than the device: rows and their state in host memory, those in use and the frequent ones in a cache.

What a step sees is what a resident table would give it, bit for bit: rows move between places, never through
arithmetic. (Types narrower than float32 round at every write-back, wherever the row is, so the size of the cache does
not matter there either.)

    batches ─▶ planner ─▶ mover ─▶ cache ─▶ gather ─▶ step ─▶ write_back ─▶ cache ─▶ mover ─▶ host

storage/tables/planner.py decides, conveyor.py runs ahead, movers.py and uva.py carry, places.py knows where
values are, records.py what a row is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from storage.tables.conveyor import Conveyor, Steps
from storage.tables.movers import Kind, choose_mover, enter, leave
from storage.tables.places import Places, Starting
from storage.tables.planner import NEVER, Plan, Planner
from storage.tables.records import NARROW, ROWS, Field, full, full_type
from storage.tables.rounding import round_
from storage.tables.streaming import Part, spans

B = TypeVar("B")
COUNTER = "roundings"


@dataclass(frozen=True)
class Ready:
    """A batch's rows, in their slots; ``slots`` and ``direct`` on the device, valid behind ``event``."""

    plan: Plan
    slots: Tensor
    direct: Tensor
    event: Any


class Offloaded:
    """Rows and state in host memory (or a mapped file), with a cache on the device.

    Args:
        start: The rows at the start, float32 (tokens, dim), frequent ones first.
        rule: Gives their state.
        device: Where steps run.
        cache_rows: Rows in the cache; as many as the table has keep it there whole.
        lookahead: Batches whose rows are brought while a step runs.
        row_dtype: float32, float16 or bfloat16.
        state_dtype: Likewise, of states with a row's shape; states of one number a row are float32.
        mover: As in movers.choose_mover.
        folder: Of a scratch file that holds the records; None holds them in memory.
        seed: Of stochastic rounding.

    Raises:
        ValueError: No row may be cached, or the mover cannot be had.
    """

    def __init__(
        self,
        start: Part,
        rule: Starting,
        *,
        device: torch.device | str = "cpu",
        cache_rows: int,
        lookahead: int = 2,
        row_dtype: torch.dtype = torch.float32,
        state_dtype: torch.dtype = torch.float32,
        mover: Kind = "auto",
        folder: Path | None = None,
        seed: int = 0,
    ) -> None:
        if cache_rows < 1:
            raise ValueError(f"cache_rows is {cache_rows}; a cache needs one row or more")
        self.device, self.lookahead, self.seed = numbered(torch.device(device)), lookahead, seed
        self.places = Places(start, rule, device=self.device, cache_rows=cache_rows, row_dtype=row_dtype, state_dtype=state_dtype, folder=folder)
        self.planner = Planner(len(self), self.places.hot, self.places.recent)
        self.mover = choose_mover(mover, self.places.host, self.device)
        self._stream = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None
        self._steps = Steps(self.device)
        self._current: Ready | None = None
        self._conveyor: Conveyor[Any, Ready] | None = None
        self._failed: BaseException | None = None
        self._moving = threading.Lock()
        self._holds = np.full(self.places.recent, -1, dtype=np.int64)  # ids in the changing part as the mover left it; the planner is ahead of it
        self._roundings = 0

    def __len__(self) -> int:
        return self.places.rows

    # -- the step ----------------------------------------------------------------------------------------------------

    def ahead(self, batches: Iterable[B], ids: Callable[[B], Tensor]) -> Iterator[B]:
        """As in Table; the rows of the next ``lookahead`` batches are brought while a step runs.

        Raises:
            RuntimeError: Asked for the next batch when another ``ahead``, or ``restore``, has ended this one; or a mover failed.
        """
        self._settle()
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream(self.device))
        conveyor = self._conveyor = Conveyor(batches, ids, self.planner, self.carry_out, self._steps, self.lookahead)
        try:
            for batch, ready in conveyor:
                self._current = ready
                yield batch
                if self._conveyor is not conveyor:
                    raise RuntimeError("within this loop the table was restored or another loop over it begun: rows are not where it looks for them now; finish or leave it first")
                self._current = None
                self._steps.done(ready.plan.number)
        finally:
            if self._conveyor is conveyor:
                self._close()

    def gather(self, ids: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """As in Table; outside ``ahead`` the rows are read from where they are, and stay there."""
        at = self._place(ids)
        if at.event is not None:
            stream = torch.cuda.current_stream(self.device)
            stream.wait_event(at.event)
            at.slots.record_stream(stream)
            at.direct.record_stream(stream)
        found = {name: cells.index_select(0, at.slots) for name, cells in self.places.cells.items()}
        for start in range(0, len(at.direct), self.mover.block):
            piece = slice(start, start + self.mover.block)
            self.places.records.unpack(self.mover.read(self._on_host(at.plan.ids[at.plan.direct[piece]])), found, at.direct[piece])
        state = {field.name: full(found[field.name]) for field in self.places.records.fields}
        on_device = ids.to(self.device)
        state |= {name: tensor.index_select(0, on_device) for name, tensor in self.places.wide.items()}
        return state.pop(ROWS), state

    def write_back(self, ids: Tensor, rows: Tensor, state: Mapping[str, Tensor]) -> None:
        """As in Table; narrower types are rounded here."""
        at = self._place(ids)
        on_device = ids.to(self.device)
        values = {ROWS: rows, **state}
        stored = {field.name: self._narrow(values[field.name], field, on_device, number) for number, field in enumerate(self.places.records.fields)}
        self._roundings += 1
        slots, kept = at.slots, stored
        if len(at.direct):
            keep = torch.ones(len(at.slots), dtype=torch.bool, device=self.device).index_fill_(0, at.direct, False).nonzero().squeeze(1)
            slots, kept = slots[keep], {name: value.index_select(0, keep) for name, value in stored.items()}
            leave(self.mover, self.places.records, stored, self._on_host(at.plan.ids[at.plan.direct]), torch.from_numpy(at.plan.direct))
        for name, value in kept.items():
            self.places.cells[name].index_copy_(0, slots, value)
        for name, tensor in self.places.wide.items():
            tensor.index_copy_(0, on_device, state[name])

    def carry_out(self, plan: Plan) -> Ready:
        """Moves what a plan says, on the mover's thread and stream."""
        with torch.cuda.stream(self._stream) if self._stream is not None else nullcontext():
            self._steps.wait(plan.after)
            with self._moving:
                leave(self.mover, self.places.records, self.places.cells, self._on_host(plan.leave_ids), torch.from_numpy(plan.leave_slots))
                enter(self.mover, self.places.records, self.places.cells, self._on_host(plan.enter_ids), torch.from_numpy(plan.enter_slots))
                self._holds[plan.leave_slots - self.places.hot] = -1
                self._holds[plan.enter_slots - self.places.hot] = plan.enter_ids
            return self._ready(plan, self._stream.record_event if self._stream is not None else None)

    # -- checkpoints -------------------------------------------------------------------------------------------------

    def parts(self) -> dict[str, Part]:
        """As in Table; the rows in the cache are written to the host first, and stay cached. Also between two batches."""
        parts = {_key(field.name): Part(full_type(field.dtype), (len(self), *field.shape), lambda field=field: self._pieces(field)) for field in self.places.records.fields}
        for name, tensor in self.places.wide.items():
            parts[_key(name)] = Part(tensor.dtype, tuple(tensor.shape), lambda tensor=tensor: [tensor])
        if self._rounds():
            parts[COUNTER] = Part(torch.int64, (1,), lambda: [torch.tensor([self._roundings])])
        return parts

    def restore(self, read: Callable[[str], Any]) -> None:
        """As in Table."""
        self._settle_all()
        parts = {name: read(_key(name)) for name in [field.name for field in self.places.records.fields] + list(self.places.wide)}
        for first, last in spans(len(self), self.places.records.width):
            self.places.fill(first, {name: part[first:last] for name, part in parts.items()})
        if self._rounds():
            self._roundings = int(read(COUNTER)[:])
        self._forget()

    def start_from(self, start: Part, rule: Starting) -> None:
        """Puts all rows, and their state to its start."""
        self._settle_all()
        self.places.start(start, rule)
        self._forget()

    def _forget(self) -> None:
        """The changing part of the cache is empty."""
        self.planner = Planner(len(self), self.places.hot, self.places.recent)
        self._steps = Steps(self.device)
        self._holds.fill(-1)

    # -- within ------------------------------------------------------------------------------------------------------

    def _pieces(self, field: Field) -> Iterator[Tensor]:
        self._write_cached()
        yield from self.places.pieces(field)

    def _write_cached(self) -> None:
        """Writes what the cache holds to the host.

        From here to the next step a move between the two changes no value, so the mover may go on while the host is read.
        """
        self._check()
        stream = torch.cuda.current_stream(self.device) if self._stream is not None else None
        with self._moving:
            if stream is not None:
                stream.wait_stream(self._stream)  # pyright: ignore[reportArgumentType]
            held = np.flatnonzero(self._holds >= 0)
            leave(self.mover, self.places.records, self.places.cells, self._on_host(self._holds[held]), torch.from_numpy(held + self.places.hot))
            if stream is not None:
                stream.synchronize()

    def _settle(self) -> None:
        """Ends what is under way."""
        self._close()
        self._check()

    def _settle_all(self) -> None:
        """The same, on the GPU too: a kernel of its that is still to write to the host would write over what the CPU puts there next."""
        self._settle()
        if self._stream is not None:
            torch.cuda.synchronize(self.device)

    def _check(self) -> None:
        """Refuses a table whose mover failed: where every row is, nobody knows.

        Raises:
            RuntimeError: It did.
        """
        failed = self._failed or (self._conveyor and self._conveyor.failed)
        if failed:
            raise RuntimeError("a mover failed and rows are lost with it; build the table again and go on from the last checkpoint") from failed

    def _close(self) -> None:
        self._current = None
        conveyor, self._conveyor = self._conveyor, None
        if conveyor is not None:
            conveyor.close()
            self._failed = self._failed or conveyor.failed
            if self._stream is not None:
                torch.cuda.current_stream(self.device).wait_stream(self._stream)

    def _place(self, ids: Tensor) -> Ready:
        if self._current is None:
            self._settle()
            wanted = ids.cpu().numpy()
            slots = self.planner.locate(wanted)
            direct, none = np.flatnonzero(slots < 0), np.zeros(0, dtype=np.int64)
            return self._ready(Plan(NEVER, wanted, slots.clip(0), direct, none, none, none, none, NEVER), None)
        planned = self._current.plan.ids
        if len(planned) != len(ids) or (ids.device.type == "cpu" and not np.array_equal(planned, ids.numpy())):
            raise ValueError(f"{len(ids)} rows are asked for that are not the {len(planned)} of the batch; a step gathers the ids that `ahead` was given, in their order")
        return self._current

    def _ready(self, plan: Plan, record: Callable[[], Any] | None) -> Ready:
        slots, direct = (torch.from_numpy(positions).to(self.device, non_blocking=True) for positions in (plan.slots, plan.direct))
        return Ready(plan, slots, direct, record() if record else None)

    def _on_host(self, ids: np.ndarray) -> Tensor:
        """Record numbers in the host's memory: the hot rows have none there."""
        return torch.from_numpy(ids - self.places.hot)

    def _narrow(self, values: Tensor, field: Field, ids: Tensor, number: int) -> Tensor:
        if field.dtype == values.dtype:
            return values
        return round_(values.flatten(1), field.dtype, ids, self.seed * 64 + number, self._roundings).view(values.shape)

    def _rounds(self) -> bool:
        return any(field.dtype in NARROW for field in self.places.records.fields)


def numbered(device: torch.device) -> torch.device:
    """The device with its number: which GPU "cuda" is, is a matter of the thread that asks."""
    return torch.device("cuda", torch.cuda.current_device()) if device.type == "cuda" and device.index is None else device


def _key(name: str) -> str:
    """A tensor's name in a checkpoint, as Resident has it."""
    return name if name == ROWS else f"state.{name}"
