"""Loads batches and transfers their rows in two threads while a step runs.

    batches ─▶ loader: plan ─▶ transfer: wait for step ``plan.depends_on_step``, move rows ─▶ step

Plans are executed in order, one at a time, each after step ``plan.depends_on_step`` (planner.py explains why
this is exact). An exception in a thread is raised in the loop, with the traceback of the thread.
"""

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from storage.tables.planner import NO_STEP, CachePlan, Planner

BatchT = TypeVar("BatchT")
ResultT = TypeVar("ResultT")
EVENTS = 64  # stored events, of the latest steps; for an earlier step, the oldest of them is waited for


@dataclass(frozen=True)
class Ready:
    """A batch whose rows are in the cache. Its int64 tensors are on the device and valid after ``event``.

    On a GPU, the tensors are views of one tensor, so ``record_stream`` of one applies to all.
    """

    plan: CachePlan
    event: Any  # CUDA event after the transfers; None on a CPU
    ids: Tensor  # rows of the batch
    slots: Tensor  # slot of each row; 0 for rows without a slot
    direct: Tensor  # positions in ``ids`` of the rows without a slot
    with_slot: Tensor  # positions in ``ids`` of the rows with a slot; empty if all have one


class Steps:
    """Records which steps have written rows back. On a GPU, ``wait`` blocks the stream, not the thread."""

    def __init__(self, device: torch.device) -> None:
        self._device, self._changed, self._last = device, threading.Condition(), NO_STEP
        self._events: deque[tuple[int, Any]] = deque(maxlen=EVENTS)  # increasing steps with their events

    def done(self, number: int) -> None:
        """Marks a step and all earlier ones as written back (on a GPU: as enqueued on the stream)."""
        with self._changed:
            self._last = max(self._last, number)
            if self._device.type == "cuda":
                event = torch.cuda.current_stream(self._device).record_event()
                self._events.append((self._last, event))
            self._changed.notify_all()

    def wait(self, number: int) -> None:
        """Waits for a step. On a GPU, the current stream waits for the work enqueued up to that step."""
        with self._changed:
            self._changed.wait_for(lambda: self._last >= number)
            event = next((event for step, event in self._events if step >= number), None)
        if event is not None and number != NO_STEP:
            torch.cuda.current_stream(self._device).wait_event(event)


class Prefetcher(Generic[BatchT, ResultT]):
    """Two threads that prepare up to ``lookahead`` batches before their steps.

    The loader thread calls ``ids``, which returns the distinct rows of a batch (int64, on the CPU), and the
    planner. Only the transfer thread calls ``execute``. The caller marks every step as done in ``steps``.
    """

    def __init__(
        self,
        batches: Iterable[BatchT],
        ids: Callable[[BatchT], Tensor],
        planner: Planner,
        execute: Callable[[CachePlan], ResultT],
        steps: Steps,
        lookahead: int,
    ) -> None:
        self._batches, self._ids, self._planner = batches, ids, planner
        self._execute, self._steps = execute, steps
        self._capacity = threading.Semaphore(lookahead + 1)
        self._planned: queue.SimpleQueue[tuple[BatchT, CachePlan] | BaseException | None] = (
            queue.SimpleQueue()
        )
        self._ready: queue.SimpleQueue[tuple[BatchT, ResultT] | BaseException | None] = queue.SimpleQueue()
        self._stopped, self._last = False, NO_STEP
        self.failed: BaseException | None = None
        options = {"args": (torch.get_num_threads(),), "daemon": True}
        self._loader = threading.Thread(target=self._load, name="table loader", **options)
        self._transfer = threading.Thread(target=self._move, name="table transfer", **options)
        self._loader.start()
        self._transfer.start()

    def __iter__(self) -> Iterator[tuple[BatchT, ResultT]]:
        """Yields each batch with the result of ``execute``."""
        while (item := self._ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
            self._capacity.release()

    def close(self) -> None:
        """Ends both threads. Executes the remaining plans, so that planner and cache stay consistent."""
        self._stopped = True
        self._capacity.release()
        self._loader.join()
        self._steps.done(self._last)  # the remaining plans will have no step
        self._transfer.join()

    def _load(self, threads: int) -> None:
        torch.set_num_threads(threads)  # a thread-local setting
        try:
            batches = iter(self._batches)
            while self._capacity.acquire() and not self._stopped:
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
                    self._ready.put((item[0], self._execute(item[1])))
                except BaseException as error:
                    self.failed = error
                    self._ready.put(error)
        self._ready.put(None)


def distinct_ids(ids: Tensor | Sequence[Tensor]) -> Tensor:
    """Returns the distinct ids of one or several integer tensors, ascending int64 (unique,) on the CPU."""
    tensors = [ids] if isinstance(ids, Tensor) else ids
    return torch.cat([tensor.flatten().cpu() for tensor in tensors]).long().unique()
