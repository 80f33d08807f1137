"""Loads batches and moves their rows in two threads while a step runs.

    batches ─▶ loader: plan ─▶ transfer: wait for the step it depends on, move ─▶ step

Plans are carried out in order, one at a time, each after step ``plan.after`` (planner.py says why that is
exact). An exception in a thread is raised in the loop, with the thread's traceback.
"""

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from storage.tables.planner import NEVER, CachePlan, Planner

B = TypeVar("B")
R = TypeVar("R")
EVENTS = 64  # of the newest steps; for an older one the oldest of them is waited for


class Steps:
    """Which steps are written back; on a GPU a stream waits for a step's event, not the thread."""

    def __init__(self, device: torch.device) -> None:
        self._device, self._changed, self._last = device, threading.Condition(), NEVER
        self._events: deque[tuple[int, Any]] = deque(maxlen=EVENTS)  # steps, rising, with their events

    def done(self, number: int) -> None:
        """Marks a step and all before it as written back (on a GPU: as enqueued on the stream)."""
        with self._changed:
            self._last = max(self._last, number)
            if self._device.type == "cuda":
                event = torch.cuda.current_stream(self._device).record_event()
                self._events.append((self._last, event))
            self._changed.notify_all()

    def wait(self, number: int) -> None:
        """Waits for a step; on a GPU the current stream waits for what it, not a later one, has enqueued."""
        with self._changed:
            self._changed.wait_for(lambda: self._last >= number)
            event = next((event for step, event in self._events if step >= number), None)
        if event is not None and number != NEVER:
            torch.cuda.current_stream(self._device).wait_event(event)


class Prefetcher(Generic[B, R]):
    """Two threads between batches and steps, at most ``lookahead`` batches ahead.

    The loader's thread calls ``ids`` (distinct rows, int64 on the CPU) and the planner, the transfer thread
    alone ``carry_out``. The caller marks every step as done in ``steps``.
    """

    def __init__(
        self,
        batches: Iterable[B],
        ids: Callable[[B], Tensor],
        planner: Planner,
        carry_out: Callable[[CachePlan], R],
        steps: Steps,
        lookahead: int,
    ) -> None:
        self._batches, self._ids, self._planner = batches, ids, planner
        self._carry_out, self._steps = carry_out, steps
        self._room = threading.Semaphore(lookahead + 1)
        self._planned: queue.SimpleQueue[tuple[B, CachePlan] | BaseException | None] = queue.SimpleQueue()
        self._ready: queue.SimpleQueue[tuple[B, R] | BaseException | None] = queue.SimpleQueue()
        self._stopped, self._last = False, NEVER
        self.failed: BaseException | None = None
        about = {"args": (torch.get_num_threads(),), "daemon": True}
        self._loader = threading.Thread(target=self._load, name="table loader", **about)
        self._transfer = threading.Thread(target=self._move, name="table transfer", **about)
        self._loader.start()
        self._transfer.start()

    def __iter__(self) -> Iterator[tuple[B, R]]:
        """Batches with the result of ``carry_out``."""
        while (item := self._ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
            self._room.release()

    def close(self) -> None:
        """Ends both threads. Plans that are made are moved, so that directory and cache agree."""
        self._stopped = True
        self._room.release()
        self._loader.join()
        self._steps.done(self._last)  # their steps will not come
        self._transfer.join()

    def _load(self, threads: int) -> None:
        torch.set_num_threads(threads)  # a thread-local setting
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
