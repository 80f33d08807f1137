"""How a command ends: its exit code, the errors that lead to it (docs/json.md), and signals.

Python runs a signal handler only between two bytecodes of the main thread, and while that unwinds Prefect and
MLflow may wait for a server that is gone (75 s). The C handler writes the signal's number at once to the
descriptor of ``signal.set_wakeup_fd``; a thread reads it and ends the process when the time is up. What a
killed run leaves behind is complete or ignored (storage/home/workspace.py), so that loses nothing.
"""

import errno
import os
import signal
import threading
import time
from types import FrameType
from typing import Self

from storage.errors import ExpectedError

DONE = 0
FAILED = 1  # an unexpected error, or `doctor` found something
REFUSED = 2  # the command, a setting or a feed has to change
INCOMPLETE = 3  # done, but some of the feeds could not be read
UNAVAILABLE = 4  # the network or the disk failed: the same command may work later
INTERRUPTED, TERMINATED = 130, 143  # by Ctrl-C and by SIGTERM: 128 and the signal's number

DISK_FULL = (os.strerror(errno.ENOSPC), "database or disk is full")  # of a full disk; the second is SQLite's
SECONDS_TO_UNWIND = 1.3
ENDING = (signal.SIGINT, signal.SIGTERM)
MESSAGE = "interrupted; finished stages are kept, the same command continues from there"
SHOW_CURSOR = "\x1b[?25h"  # the progress bar hides it

_reported = threading.Lock()
_received: int = 0  # the signal's number
_messages: int = 2  # descriptor of the terminal


def expected(error: BaseException) -> tuple[int, str] | None:
    """Returns exit code and message of an expected error, None for a bug."""
    if (file := full_disk(error)) is not None:
        advice = "Free some and run the same command again; finished stages are kept"
        return UNAVAILABLE, f"no space left on the disk{f' ({file})' if file else ''}. {advice}"
    return (error.exit_code, str(error)) if isinstance(error, ExpectedError) else None


def full_disk(error: BaseException | None) -> str | None:
    """Returns the path that raised ENOSPC or EDQUOT, '' if unknown, None for any other error.

    Searches the chain of causes, because MLflow and safetensors raise their own errors for a full disk.
    """
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return str(error.filename2 or error.filename or "")
        if any(words in str(error) for words in DISK_FULL):
            return ""
        error = error.__cause__ or error.__context__
    return None


def watch_signals() -> None:
    """From now on SIGINT and SIGTERM raise ``KeyboardInterrupt``, and end the process soon after."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in ENDING:
        signal.signal(number, _interrupt)
    os.register_at_fork(after_in_child=_restore_defaults)
    threading.Thread(target=_end_in_time, args=(reading,), name="signals", daemon=True).start()


class Signals:
    """From ``with`` on, Ctrl-C, SIGTERM and a closed terminal are noted and end nothing: for a command that
    has other processes to end, in its own time.
    """

    def __init__(self) -> None:
        self.received = False

    def __enter__(self) -> Self:
        signal.set_wakeup_fd(-1)
        for number in (*ENDING, signal.SIGHUP):
            signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:  # the process is at its end: signals stay noted
        pass

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received = True


def report_interrupted() -> None:
    """Prints the message once, past Python's buffers and their locks."""
    if _reported.acquire(blocking=False):
        os.write(_messages, f"{SHOW_CURSOR if os.isatty(_messages) else ''}{MESSAGE}\n".encode())


def exit_code() -> int:
    """128 and the signal's number, as shells have it: 130 for Ctrl-C, 143 for SIGTERM."""
    return 128 + (_received or signal.SIGINT)


def signalled() -> bool:
    """Whether SIGINT or SIGTERM has come: an error since then may be what a library made of it (DuckDB's
    "Query interrupted").
    """
    return bool(_received)


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _received
    _received = number
    for ending in ENDING:  # a second signal must not interrupt the unwinding, which is bounded in time
        signal.signal(ending, lambda number, frame: None)
    _silence()
    raise KeyboardInterrupt


def _silence() -> None:
    """From now on standard error takes our message alone: libraries log what a signal interrupts, and Python
    prints what a callback cannot raise (SQLAlchemy's, of a connection that is collected).
    """
    global _messages
    _messages = os.dup(2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _end_in_time(reading: int) -> None:
    while (number := os.read(reading, 1)[0]) not in ENDING:
        pass
    global _received
    _received = number
    time.sleep(SECONDS_TO_UNWIND)
    report_interrupted()
    os._exit(128 + number)


def _restore_defaults() -> None:
    """In a forked child, which must not write to its parent's descriptor."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
