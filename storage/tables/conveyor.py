"""Batches on their way to the step: loaded and planned in one thread, their rows moved in a second, while a step runs.

    batches ─▶ loader: plan ─▶ mover: wait for the step it depends on, move ─▶ step

At most ``lookahead`` batches are ahead of the one in its step. Plans are moved in their order, one at a time; a move
waits for ``plan.after`` (storage/tables/planner.py says why that is exact). What a thread raises, the loop raises, with
the thread's traceback.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from storage.tables.planner import NEVER, Plan, Planner

B = TypeVar("B")
R = TypeVar("R")


class Steps:
    """Which steps are written back. On a GPU a step is done when its event is: the mover's stream waits, not its thread."""

    def __init__(self, device: torch.device) -> None:
        self._device, self._changed = device, threading.Condition()
        self._last = NEVER
        self._event: Any = None

    def done(self, number: int) -> None:
        """Says that a step and all before it are written back (on a GPU: have been put on the stream)."""
        with self._changed:
            self._last = max(self._last, number)
            if self._device.type == "cuda":
                self._event = torch.cuda.current_stream(self._device).record_event()
            self._changed.notify_all()

    def wait(self, number: int) -> None:
        """Waits for a step; on a GPU the current stream waits for what the step has put on its own."""
        with self._changed:
            self._changed.wait_for(lambda: self._last >= number)
            event = self._event
        if event is not None and number != NEVER:
            torch.cuda.current_stream(self._device).wait_event(event)


class Conveyor(Generic[B, R]):
    """Two threads between batches and steps.

    Args:
        batches: In their order; read in the loader's thread.
        ids: Distinct rows of a batch, int64 on the CPU.
        planner: Called in that thread alone.
        carry_out: Moves what a plan says; called in the mover's thread alone, in the order of the plans.
        steps: Told by the caller of every step.
        lookahead: Batches ahead of the step.
    """

    def __init__(self, batches: Iterable[B], ids: Callable[[B], Tensor], planner: Planner, carry_out: Callable[[Plan], R], steps: Steps, lookahead: int) -> None:
        self._batches, self._ids, self._planner, self._carry_out, self._steps = batches, ids, planner, carry_out, steps
        self._room = threading.Semaphore(lookahead + 1)
        self._planned: queue.SimpleQueue[tuple[B, Plan] | BaseException | None] = queue.SimpleQueue()
        self._ready: queue.SimpleQueue[tuple[B, R] | BaseException | None] = queue.SimpleQueue()
        self._stopped = False
        self._last = NEVER
        self.failed: BaseException | None = None
        threads = torch.get_num_threads()
        self._threads = [threading.Thread(target=work, args=(threads,), name=f"table {name}", daemon=True) for name, work in (("loader", self._load), ("mover", self._move))]
        for thread in self._threads:
            thread.start()

    def __iter__(self) -> Iterator[tuple[B, R]]:
        """Batches with what ``carry_out`` returned; asking for the next one says that the last one's step is done."""
        while (item := self._ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
            self._room.release()

    def close(self) -> None:
        """Ends both threads. Plans that are made are moved, so that directory and cache agree."""
        self._stopped = True
        self._room.release()
        self._threads[0].join()
        self._steps.done(self._last)  # no step of theirs will come
        self._threads[1].join()

    def _load(self, threads: int) -> None:
        torch.set_num_threads(threads)  # each thread has its own number
        try:
            batches = iter(self._batches)
            while self._room.acquire() and not self._stopped:
                try:
                    batch = next(batches)
                except StopIteration:
                    break
                plan = self._planner.plan(self._ids(batch).numpy())
                self._last = plan.number
                self._planned.put((batch, plan))
        except BaseException as error:
            self._planned.put(error)
        finally:
            self._planned.put(None)

    def _move(self, threads: int) -> None:
        torch.set_num_threads(threads)
        while (item := self._planned.get()) is not None:
            if isinstance(item, BaseException):
                self._ready.put(item)
            elif self.failed is None:
                try:
                    self._ready.put((item[0], self._carry_out(item[1])))
                except BaseException as error:
                    self.failed = error
                    self._ready.put(error)
        self._ready.put(None)
