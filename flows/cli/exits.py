"""Defines the exit codes (docs/json.md), and reports expected errors, Ctrl-C and SIGTERM.

After a signal, Python raises KeyboardInterrupt, but Prefect and MLflow may then wait 75 s for a lost server.
Therefore, a thread ends the process SECONDS_TO_UNWIND after the signal. The thread reads the number of the
signal from the descriptor of ``signal.set_wakeup_fd``, to which Python's C handler writes it immediately,
even while the main thread is busy. No data is lost: files of an interrupted run are either complete or
ignored (storage/home/workspace.py).
"""

import errno
import os
import signal
import threading
import time
from types import FrameType

from storage.errors import ExpectedError

DONE = 0  # success
FAILED = 1  # an unexpected error, or a problem that `doctor` found
REFUSED = 2  # the command, a setting or a feed is invalid
INCOMPLETE = 3  # done, but some feeds could not be read
UNAVAILABLE = 4  # network or disk failure; the same command may work later
INTERRUPTED, TERMINATED = 130, 143  # ended by Ctrl-C or by SIGTERM: 128 plus the signal's number

DISK_FULL = (os.strerror(errno.ENOSPC), "database or disk is full")  # messages of the system and of SQLite
SECONDS_TO_UNWIND = 1.3  # time from a signal to the end of the process
SIGNALS = (signal.SIGINT, signal.SIGTERM)
MESSAGE = "interrupted; finished stages are kept, the same command continues from there"
SHOW_CURSOR = "\x1b[?25h"  # the progress bar hides the cursor

_report_once = threading.Lock()
_signal_number: int = 0  # number of the received signal; 0: none
_message_fd: int = 2  # standard error; after _silence_stderr, a copy of it


def expected_error(error: BaseException) -> tuple[int, str] | None:
    """Returns the exit code and the message of an expected error, or None for any other error."""
    if (path := full_disk(error)) is not None:
        advice = "Free some space and run the same command again; finished stages are kept"
        return UNAVAILABLE, f"no space left on the disk{f' ({path})' if path else ''}. {advice}"
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return REFUSED, f"the path {str(error.filename)[:60]!r}… is too long; name a shorter one"
    # pathlib raises this error, and does not name the path.
    if isinstance(error, RuntimeError) and "home directory" in str(error):
        return (
            REFUSED,
            "a path begins with ~ and a user who does not exist on this machine; name another path",
        )
    return (error.exit_code, str(error)) if isinstance(error, ExpectedError) else None


def full_disk(error: BaseException | None) -> str | None:
    """Returns the path whose write raised ENOSPC or EDQUOT ('' if unknown), or None for any other error.

    Searches the causes of the error, because MLflow and safetensors convert errors about a full disk.
    """
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return str(error.filename2 or error.filename or "")
        if any(text in str(error) for text in DISK_FULL):
            return ""
        error = error.__cause__ or error.__context__
    return None


def watch_signals() -> None:
    """Makes SIGINT and SIGTERM raise KeyboardInterrupt, and end the process SECONDS_TO_UNWIND later."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    for number in SIGNALS:
        signal.signal(number, _interrupt)
    os.register_at_fork(after_in_child=_restore_defaults)
    threading.Thread(target=_exit_after_signal, args=(read_end,), name="signals", daemon=True).start()


def report_interrupted() -> None:
    """Prints MESSAGE once. Does not use Python's buffers, because their locks may be held."""
    if _report_once.acquire(blocking=False):
        os.write(_message_fd, f"{SHOW_CURSOR if os.isatty(_message_fd) else ''}{MESSAGE}\n".encode())


def exit_code() -> int:
    """Returns 128 plus the number of the signal, as shells do: 130 for Ctrl-C, 143 for SIGTERM."""
    return 128 + (_signal_number or signal.SIGINT)


def signal_received() -> bool:
    """Returns whether SIGINT or SIGTERM has arrived. The signal may be the cause of later errors."""
    return bool(_signal_number)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Signal handler: ignores further signals, silences standard error, and raises KeyboardInterrupt."""
    global _signal_number
    _signal_number = number
    for signal_number in SIGNALS:  # a second signal must not interrupt the unwinding
        signal.signal(signal_number, lambda number, frame: None)
    _silence_stderr()
    raise KeyboardInterrupt


def _silence_stderr() -> None:
    """Redirects standard error to the null device, except for MESSAGE.

    Interrupted libraries log errors, and Python prints exceptions of destructors and other callbacks.
    """
    global _message_fd
    _message_fd = os.dup(2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _exit_after_signal(read_end: int) -> None:
    """Waits for a signal in the pipe ``read_end``, and ends the process SECONDS_TO_UNWIND later."""
    while (number := os.read(read_end, 1)[0]) not in SIGNALS:
        pass
    global _signal_number
    _signal_number = number
    time.sleep(SECONDS_TO_UNWIND)
    report_interrupted()
    os._exit(128 + number)


def _restore_defaults() -> None:
    """Restores Python's default signal handlers in a forked child, so that it does not notify its parent."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
