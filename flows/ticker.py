"""Says that work goes on while nothing else is said: a stage that takes longer than a few seconds is never silent."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

QUIET_SECONDS = 3.0  # nothing said for so long: say which stage is at work, and again after as long


class Ticker:
    """Knows what is at work and when something was said last."""

    def __init__(self, started: float) -> None:
        self._started = started
        self._lock = threading.Lock()
        self._what, self._since, self._said = "Prefect", started, started

    def heard(self, what: str | None = None) -> None:
        """Something was said; ``what`` is at work from now on (None: the same as before)."""
        with self._lock:
            self._said = time.perf_counter()
            if what is not None and what != self._what:
                self._what, self._since = what, self._said

    def _tick(self) -> None:
        now = time.perf_counter()
        with self._lock:
            if now - self._said < QUIET_SECONDS:
                return
            self._said = now
            line = f"{now - self._started:6.1f} s  {self._what:<10}  at work for {now - self._since:.0f} s"
        print(line, flush=True)

    @contextmanager
    def ticking(self) -> Iterator[None]:
        """Ticks in a thread for as long as the block runs."""
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(0.5):
                self._tick()

        thread = threading.Thread(target=watch, name="ticker", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
