"""The exit codes of every command, and which error leads to which: docs/json.md."""

from __future__ import annotations

import errno
import sys

DONE = 0
FAILED = 1  # in a way that nobody expected, or `doctor` found something
REFUSED = 2  # asked for something that cannot be: the command, a setting or a feed has to change
INCOMPLETE = 3  # done, but some of the feeds could not be read
UNAVAILABLE = 4  # the network or the disk failed: the same command may work later
INTERRUPTED, TERMINATED = 130, 143  # by Ctrl-C and by SIGTERM: 128 and the signal's number (interrupt.py)

EXPECTED = (  # explained in one line; the first that fits counts
    ("tasks.ingest.feeds", "FeedUnreachable", UNAVAILABLE),
    ("tasks.ingest.feeds", "FeedError", REFUSED),
    ("storage.catalogue.ledger", "LedgerError", FAILED),
    ("storage.catalogue.views", "QueryError", REFUSED),
    ("storage.tracking.connection", "TrackingError", REFUSED),
    ("storage.workspace", "HomeError", REFUSED),
    ("flows.export", "ExportError", REFUSED),
    ("flows.assignments", "SettingError", REFUSED),
    ("flows.words", "WordsError", REFUSED),
    ("tasks.contest.courses", "UnknownRule", REFUSED),
    ("tasks.neighbours.search", "SearchError", REFUSED),
    ("tasks.preprocess.categories", "MappingError", REFUSED),
    ("tasks.preprocess.task", "TooFewTitles", REFUSED),
)
FULL = (errno.ENOSPC, errno.EDQUOT)


def expected(error: BaseException) -> tuple[int, str] | None:
    """Exit code and text of an error that has a cause outside of GuideSpace; None for any other."""
    if isinstance(error, OSError) and error.errno in FULL:
        where = f" ({error.filename})" if error.filename else ""
        return (
            UNAVAILABLE,
            f"no space left on the disk{where}. Free some and run the same command again; what was finished is kept",
        )
    for module, name, code in EXPECTED:  # a module that was not imported has raised nothing
        if module in sys.modules and isinstance(error, getattr(sys.modules[module], name)):
            return code, str(error)
    return None
