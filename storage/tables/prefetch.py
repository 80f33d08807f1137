"""Loads the next batches and transfers their rows, in two threads, while a training step runs.

    batches ─▶ loader: plan ─▶ transfer: wait for step ``plan.depends_on_step``, transfer rows ─▶ step

Plans are executed in order. The transfers of a plan begin after step ``plan.depends_on_step``, so that
prefetching does not change the results (see planner.py). An exception in a thread is raised in the loop over
the batches, with the traceback of the thread.
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
MAX_EVENTS = 64  # number of latest steps with a stored event; earlier steps share the oldest stored event


@dataclass(frozen=True)
class ReadyBatch:
    """A batch whose transfers are enqueued. The int64 tensors are on the device and valid after ``event``.

    On a GPU, the tensors are views of one tensor, so ``record_stream`` of one tensor applies to all.
    """

    plan: CachePlan
    event: Any  # CUDA event after the transfers; None on a CPU
    ids: Tensor  # distinct rows of the batch, (unique,)
    slots: Tensor  # slot of each row, (unique,); 0 for rows without a slot
    direct: Tensor  # positions in ``ids`` of the rows without a slot
    with_slot: Tensor  # positions in ``ids`` of the rows with a slot; empty if all rows have a slot


class Steps:
    """Records which steps have written their rows back, and lets transfers wait for a step.

    On a GPU, ``wait`` blocks the current stream instead of the thread.
    """

    def __init__(self, device: torch.device) -> None:
        self._device, self._changed, self._last_step = device, threading.Condition(), NO_STEP
        self._events: deque[tuple[int, Any]] = deque(maxlen=MAX_EVENTS)  # (step, event) in increasing order

    def done(self, number: int) -> None:
        """Records that a step and all earlier steps are written back (on a GPU: enqueued on the stream)."""
        with self._changed:
            self._last_step = max(self._last_step, number)
            if self._device.type == "cuda":
                event = torch.cuda.current_stream(self._device).record_event()
                self._events.append((self._last_step, event))
            self._changed.notify_all()

    def wait(self, number: int) -> None:
        """Waits for a step. On a GPU, the current stream waits for the work enqueued up to that step."""
        with self._changed:
            self._changed.wait_for(lambda: self._last_step >= number)
            event = next((event for step, event in self._events if step >= number), None)
        if event is not None and number != NO_STEP:
            torch.cuda.current_stream(self._device).wait_event(event)


class Prefetcher(Generic[BatchT, ResultT]):
    """Prepares up to ``lookahead`` batches before their steps, in two threads.

    The caller must call ``steps.done`` after every step.

    Args:
        batches: Batches of any type; the loader thread reads them.
        ids: Function that returns the distinct rows of a batch, int64 (unique,) on the CPU; called in the
            loader thread.
        planner: Plans the transfers, in the loader thread.
        execute: Function that executes a plan, called in the transfer thread.
        steps: Records the steps for which transfers wait.
        lookahead: Maximum number of batches that are prepared.
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
        self._is_stopped, self._last_planned = False, NO_STEP
        self.error: BaseException | None = None  # exception of the transfer thread
        options = {"args": (torch.get_num_threads(),), "daemon": True}
        self._loader = threading.Thread(target=self._load_batches, name="table loader", **options)
        self._transfer = threading.Thread(target=self._execute_plans, name="table transfer", **options)
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
        """Executes the remaining plans, so that planner and cache stay consistent, and ends both threads."""
        self._is_stopped = True
        self._capacity.release()
        self._loader.join()
        self._steps.done(self._last_planned)  # the remaining plans will have no step
        self._transfer.join()

    def _load_batches(self, threads: int) -> None:
        torch.set_num_threads(threads)  # a thread-local setting
        try:
            batches = iter(self._batches)
            while self._capacity.acquire() and not self._is_stopped:
                try:
                    batch = next(batches)
                except StopIteration:
                    break
                plan = self._planner.plan(self._ids(batch).numpy())
                self._last_planned = plan.number
                self._planned.put((batch, plan))
        except BaseException as error:
            self._planned.put(error)
        finally:
            self._planned.put(None)

    def _execute_plans(self, threads: int) -> None:
        torch.set_num_threads(threads)
        while (item := self._planned.get()) is not None:
            if isinstance(item, BaseException):
                self._ready.put(item)
            elif self.error is None:
                try:
                    self._ready.put((item[0], self._execute(item[1])))
                except BaseException as error:
                    self.error = error
                    self._ready.put(error)
        self._ready.put(None)


def find_distinct_ids(ids: Tensor | Sequence[Tensor]) -> Tensor:
    """Returns the distinct ids of one or several integer tensors: ascending int64 (unique,) on the CPU."""
    tensors = [ids] if isinstance(ids, Tensor) else ids
    return torch.cat([tensor.flatten().cpu() for tensor in tensors]).long().unique()
