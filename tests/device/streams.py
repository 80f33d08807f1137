"""Streams, events and memory of a simulated GPU.

Work is queued on streams and run by whoever queues or waits next, in an order that a seed draws from those
that CUDA permits: it starves the main stream, starves the others, or draws at random.
"""

import random
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

POISON = 0xFF  # NaN in a float, -1 in an id
LONG_SLEEP = 1000  # cycles in which the other streams do all that they can
STARVE_MAIN, STARVE_OTHERS, DRAW = range(3)


@dataclass(eq=False)
class Mark:
    """Position in the queue of a stream for which events wait."""

    stream: "Stream"
    passed: bool = False


class Gpu:
    """The device: its streams, memory that is allocated or registered, and the scheduler."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.local = threading.local()
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Creates a new device, whose scheduler draws by ``seed``."""
        with self.lock:
            self.random, self.policy = random.Random(seed), seed % 3
            self.streams: list[Stream] = []
            self.main = Stream(gpu=self)
            self.registered: dict[int, int] = {}  # bytes by address
            self.live: dict[int, Tensor] = {}  # bytes of each allocation by address
            self.pinned: list[Tensor] = []
            self.freed: list[tuple[list[Mark], Stream, Callable[[], Any]]] = []  # used by other streams still
            self.synchronisations, self.error, self._running, self.allocated = 0, "", False, 0
            self.launches, self.pageable_copies = 0, 0

    @property
    def current(self) -> "Stream":
        """Returns the current stream of this thread."""
        stream = getattr(self.local, "stream", None)
        return stream if stream in self.streams else self.main

    def launch(self, work: Callable[[], Any]) -> None:
        """Queues work on the current stream; an error of an earlier call is raised here, as CUDA does."""
        with self.lock:
            if error := self.error:
                self.error = ""
                raise RuntimeError(f"CUDA error: {error}")
            self.launches += 1
            self.current.put(work)

    def run_some(self) -> None:
        """Runs a random number of queued items."""
        if self._running:
            return
        for entry in [entry for entry in self.freed if all(mark.passed for mark in entry[0])]:
            self.freed.remove(entry)
            entry[1].queue.append(entry[2])
        for stream in self.random.sample(self.streams, len(self.streams)):
            starved = (stream is self.main) == (self.policy == STARVE_MAIN)
            if self.policy == DRAW:
                count = self.random.choice((0, 0, 0, 1, 3, 30))
            else:
                count = 0 if starved else len(stream.queue)
            while count and stream.step():
                count -= 1

    def run_others(self, stream: "Stream") -> None:
        """Runs the other streams until each is empty or waits."""
        while any(other.step() for other in self.streams if other is not stream):
            pass

    def wait(self, mark: Mark) -> None:
        """Runs only the items that must run before a mark."""
        while not mark.passed:
            if (needed := mark.stream.blocked_by()) is not None:
                self.wait(needed)
            mark.stream.step()

    def synchronize(self, stream: "Stream | None" = None) -> None:
        """Waits for a stream, or for all."""
        with self.lock:
            self.synchronisations += 1
            for one in [stream] if stream else list(self.streams):
                self.wait(one.mark())

    def holds(self, address: int) -> bool:
        """Returns whether an address is in pinned or registered host memory."""
        return any(start <= address < start + size for start, size in self.registered.items()) or any(
            tensor.data_ptr() <= address < tensor.data_ptr() + tensor.nbytes for tensor in self.pinned
        )

    def allocation_of(self, address: int) -> Tensor | None:
        """Returns the live allocation that contains an address, as uint8."""
        found = (one for start, one in self.live.items() if start <= address < start + one.nbytes)
        return next(found, None)


class Stream:
    """Queue of work with the interface of torch.cuda.Stream."""

    def __init__(self, device: Any = None, priority: int = 0, *, gpu: Gpu | None = None) -> None:
        self.gpu = gpu or GPU
        self.queue: deque[Callable[[], Any] | Mark | tuple[Mark]] = deque()  # a tuple: wait for the mark
        self.device = torch.device("cuda", 0)
        self.gpu.streams.append(self)

    @property
    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, id(self)

    def put(self, item: Callable[[], Any] | Mark | tuple[Mark]) -> None:
        """Queues an item and lets the scheduler run."""
        with self.gpu.lock:
            self.queue.append(item)
            self.gpu.run_some()

    def mark(self) -> Mark:
        """Marks the end of the queue."""
        mark = Mark(self)
        self.put(mark)
        return mark

    def blocked_by(self) -> Mark | None:
        """Returns the mark for which the next item waits."""
        head = self.queue[0] if self.queue else None
        return head[0] if isinstance(head, tuple) and not head[0].passed else None

    def step(self) -> bool:
        """Runs the next item; returns False if there is none, or if it waits."""
        if not self.queue or self.blocked_by() is not None:
            return False
        item = self.queue.popleft()
        if isinstance(item, Mark):
            item.passed = True
        elif not isinstance(item, tuple):
            running, self.gpu._running = self.gpu._running, True
            try:
                item()
            finally:
                self.gpu._running = running
        return True

    def record_event(self, event: "Event | None" = None) -> "Event":
        """Records an event at the end of the queue."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: "Event") -> None:
        """Makes later items wait for the last recording of the event."""
        if event.mark is not None:
            self.put((event.mark,))

    def wait_stream(self, stream: "Stream") -> None:
        """Makes later items wait for the items that the other stream has now."""
        self.wait_event(stream.record_event())

    def synchronize(self) -> None:
        """Waits until the stream has run all its items."""
        self.gpu.synchronize(self)

    def query(self) -> bool:
        """Returns whether all work has ended."""
        return not self.queue

    def __enter__(self) -> "Stream":
        self._before, self.gpu.local.stream = getattr(self.gpu.local, "stream", None), self
        return self

    def __exit__(self, *raised: object) -> None:
        self.gpu.local.stream = self._before


class Event:
    """Event with the interface of torch.cuda.Event."""

    def __init__(self, **about: Any) -> None:
        self.mark: Mark | None = None
        self.seconds = 0.0  # when the host recorded it

    def elapsed_time(self, end: "Event") -> float:
        """Returns the milliseconds between the two recordings by the clock of the host."""
        return 1000 * (end.seconds - self.seconds)

    def record(self, stream: Stream | None = None) -> None:
        """Records the event at the end of the queue of a stream."""
        self.mark, self.seconds = (stream or GPU.current).mark(), time.perf_counter()

    def wait(self, stream: Stream | None = None) -> None:
        """Makes later items of a stream wait for the event."""
        (stream or GPU.current).wait_event(self)

    def query(self) -> bool:
        """Returns whether the work before the event has ended."""
        return self.mark is None or self.mark.passed

    def synchronize(self) -> None:
        """Waits until the work before the event has ended."""
        if self.mark is not None:
            with GPU.lock:
                GPU.synchronisations += 1
                GPU.wait(self.mark)


class Allocation:
    """Memory of the device, filled with POISON when it is allocated and when it is freed.

    The caching allocator hands freed memory to the next call on the same stream, whatever other streams still
    do with it, unless ``record_stream`` named them.
    """

    def __init__(self, memory: Tensor) -> None:
        self.stream, self.used_by = GPU.current, set[Stream]()
        self.memory = torch.empty(0, dtype=torch.uint8).set_(memory.untyped_storage())
        self.memory.fill_(POISON)
        if self.memory.nbytes:
            with GPU.lock:
                GPU.live[self.memory.data_ptr()] = self.memory
                GPU.allocated += self.memory.nbytes

    def __del__(self) -> None:
        with GPU.lock:
            memory = self.memory
            if GPU.live.get(memory.data_ptr()) is not memory:
                return  # of a device that was reset
            del GPU.live[memory.data_ptr()]
            GPU.allocated -= memory.nbytes
            marks = [Mark(stream) for stream in self.used_by - {self.stream}]
            for mark in marks:  # only queued: this may be a collector's call, amid the scheduler
                mark.stream.queue.append(mark)
            if marks:
                GPU.freed.append((marks, self.stream, lambda: memory.fill_(POISON)))
            else:
                self.stream.queue.append(lambda: memory.fill_(POISON))


def sleep(cycles: int) -> None:
    """Delays the current stream while the others continue, as torch.cuda._sleep does."""
    stream = GPU.current

    def work() -> None:
        GPU._running = False  # the others may run within
        GPU.run_others(stream)

    GPU.launch(work if cycles > LONG_SLEEP else lambda: None)


GPU = Gpu()
