"""The commands ``guidespace ingest`` and ``guidespace backfill``, without Prefect, which starts slowly."""

import sys
from collections.abc import Sequence

from flows.cli.exits import DONE, INCOMPLETE
from flows.overrides import override
from storage.artifacts import Progress
from storage.home.readings import read_readings
from storage.home.workspace import Workspace
from tasks.form import configurable, setting
from tasks.ingest.publish import read_and_publish
from tasks.ingest.results import Failure, FeedResult
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.dates import Dated


@configurable
class ReadingSettings:
    """Settings of the commands that only read; those of all stages import PyTorch, half a gigabyte."""

    ingest: IngestSettings = setting(IngestSettings(), "Reading feeds")


def reading_settings(assignments: Sequence[str]) -> IngestSettings:
    """The ingest stage's settings with what was set."""
    return override(ReadingSettings(), assignments).ingest


def read_feeds(feeds: Sequence[str | Dated], home: str, settings: IngestSettings) -> int:
    """Reads feeds and prints what became of each; returns the exit code."""
    workspace = Workspace(home)
    with workspace.writing(f"ingest of {len(feeds)} feeds"):
        guide = read_and_publish(workspace, feeds, settings, None, _report)
    counts = ", ".join(f"{count:,} {name}" for name, count in guide.counts.items())
    print(f"The guide: {workspace.folder(guide)} ({counts})")
    return INCOMPLETE if any(feed.failed for feed in read_readings(workspace.home)) else DONE


def _report(event: Progress | FeedResult | Failure) -> None:
    if isinstance(event, FeedResult):
        print(event, flush=True)
        for anomaly in event.anomalies:
            print(f"warning: {event.source}: {anomaly}", file=sys.stderr, flush=True)
    elif isinstance(event, Failure):
        print(event, file=sys.stderr, flush=True)
    elif event.step < event.total and event.step % 1000:
        print(event.note, flush=True)
