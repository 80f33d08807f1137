"""The command ``guidespace`` (also ``python -m flows``).

Nothing heavy is imported before it is known what is asked: ``--help`` answers at once.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from flows.arguments import make_parser
from flows.exits import DONE
from flows.interrupt import exit_code, say_interrupted, watch_signals

SPEAKING = ("nightly", "tune", "ingest", "backfill", "doctor")  # say at once what they do


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code (exits.py)."""
    given = make_parser().parse_args(arguments)
    os.environ.setdefault("DO_NOT_TRACK", "1")  # Prefect, MLflow: no telemetry unless somebody asks for it
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    try:
        with _patience(given.subcommand):
            return given.command(given)
    except KeyboardInterrupt:
        say_interrupted()
        return exit_code()
    except BrokenPipeError:  # `guidespace scores | head`: whoever read has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:
        from flows.console import explain

        return explain(error)


@contextmanager
def _patience(subcommand: str) -> Iterator[None]:
    """Tells a person at a terminal that something is going on where the answer takes its time: imports, a model."""
    loading = threading.Timer(0.7, print, [f"guidespace {subcommand}: loading …"], {"file": sys.stderr, "flush": True})
    loading.daemon = True
    if subcommand not in SPEAKING and sys.stderr.isatty():
        loading.start()
    try:
        yield
    finally:
        loading.cancel()


def entry() -> None:
    """The console command: runs it and leaves without the interpreter's teardown."""
    watch_signals()
    from flows.server import leave

    leave(main())


if __name__ == "__main__":
    entry()
