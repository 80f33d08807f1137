"""Ctrl-C and SIGTERM: the command unwinds, and where that takes too long, ends all the same.

Python runs a signal handler only between two bytecodes of the main thread, so a query or a matrix product delays it, and
while it unwinds Prefect and MLflow may wait for a server that is gone (75 s). The C handler, however, writes the signal's
number at once to the file descriptor of ``signal.set_wakeup_fd``. A thread reads it and ends the process when the time is up.
What a killed run leaves behind is complete or ignored (storage/workspace.py), so ending it at any point loses nothing.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from types import FrameType

SECONDS_TO_UNWIND = 1.3
ENDING = (signal.SIGINT, signal.SIGTERM)
MESSAGE = "interrupted; what was finished is kept, the same command goes on from there"

_said = threading.Lock()


def watch_signals() -> None:
    """From now on SIGINT and SIGTERM raise ``KeyboardInterrupt``, and end the process ``SECONDS_TO_UNWIND`` later."""
    waiting, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    for number in ENDING:
        signal.signal(number, _interrupt)
    os.register_at_fork(after_in_child=_forget)
    threading.Thread(target=_end_in_time, args=(waiting,), name="signals", daemon=True).start()


def say_interrupted() -> None:
    """Tells the user once, whoever comes first."""
    if _said.acquire(blocking=False):
        print(MESSAGE, file=sys.stderr, flush=True)


def exit_code() -> int:
    """128 and the signal's number, as shells have it: 130 for Ctrl-C, 143 for SIGTERM."""
    return 128 + _received


_received: int = signal.SIGINT


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _received
    _received = number
    for ending in ENDING:  # a second one must not interrupt the unwinding; the time it may take is bounded anyway
        signal.signal(ending, lambda number, frame: None)
    raise KeyboardInterrupt


def _end_in_time(waiting: int) -> None:
    while (number := os.read(waiting, 1)[0]) not in ENDING:
        pass
    time.sleep(SECONDS_TO_UNWIND)
    say_interrupted()
    os._exit(128 + number)


def _forget() -> None:
    """A forked child ends by a signal as processes do, and does not write to its parent's descriptor."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
