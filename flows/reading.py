"""The commands ``guidespace ingest`` and ``guidespace backfill``: no Prefect, so they take as long as the reading takes."""

from __future__ import annotations

import datetime
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from flows.assignments import SettingError
from flows.exits import DONE, INCOMPLETE
from storage.artifacts import Progress
from storage.readings import read_readings
from storage.workspace import Workspace
from tasks.ingest.dated import Dated, dated_guides
from tasks.ingest.outcomes import Failure, Outcome
from tasks.ingest.publish import read_and_publish
from tasks.ingest.settings import IngestSettings


@dataclass(frozen=True, kw_only=True)
class ReadingSettings:
    """Settings of the commands that only read; those of all stages import PyTorch, half a gigabyte."""

    ingest: IngestSettings = field(default=IngestSettings())


def run_ingest(feeds: Sequence[str | Dated], home: str, settings: IngestSettings) -> int:
    """Reads feeds and says what came of each."""
    workspace = Workspace(home)
    with workspace.writing(f"ingest of {len(feeds)} feeds"):
        guide = read_and_publish(workspace, feeds, settings, None, _tell)
    counts = ", ".join(f"{count:,} {name}" for name, count in guide.counts.items())
    print(f"The guide: {workspace.folder(guide)} ({counts})")
    return INCOMPLETE if any(told.failed for told in read_readings(workspace.home)) else DONE


def run_backfill(feeds: Sequence[str], first: str, last: str, home: str, settings: IngestSettings) -> int:
    """Reads dated guides from ``first`` to ``last``, oldest first."""
    return run_ingest(dated_guides(feeds, read_date(first), read_date(last)), home, settings)


def read_date(text: str) -> datetime.date:
    """A date as YYYY-MM-DD.

    Raises:
        SettingError: It is none.
    """
    try:
        return datetime.date.fromisoformat(text)
    except ValueError as error:
        raise SettingError(f"{text!r} is no date; expected YYYY-MM-DD") from error


def read_instant(text: str) -> datetime.datetime:
    """A date (its end, UTC: all that was known on that day) or an ISO instant (UTC where it names no zone).

    Raises:
        SettingError: It is neither.
    """
    try:
        if len(text) == len("2025-03-31"):
            return datetime.datetime.combine(datetime.date.fromisoformat(text), datetime.time.max, datetime.UTC)
        moment = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise SettingError(f"--as-of {text!r} is no date; expected YYYY-MM-DD, or an instant such as 2025-03-31T18:00+02:00") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _tell(event: Progress | Outcome | Failure) -> None:
    if isinstance(event, Outcome):
        print(event, flush=True)
        for anomaly in event.anomalies:
            print(f"warning: {event.source}: {anomaly}", file=sys.stderr, flush=True)
    elif isinstance(event, Failure):
        print(event, file=sys.stderr, flush=True)
    elif event.step < event.total and event.step % 1000:
        print(event.note, flush=True)
