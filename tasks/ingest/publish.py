"""The whole stage without an orchestrator: feeds into the catalogue, and its Guide published."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Sequence

from storage.artifacts import Guide, Progress
from storage.catalogue.connection import Catalogue
from storage.catalogue.snapshots import Choice, snapshot, snapshot_digest
from storage.catalogue.status import publish_status
from storage.readings import Told, write_readings
from storage.workspace import Workspace
from tasks.ingest.feeds import Named
from tasks.ingest.ingest import ingest_feeds, leave_no_downloads
from tasks.ingest.outcomes import Failure, Outcome
from tasks.ingest.settings import IngestSettings


def read_and_publish(
    workspace: Workspace,
    feeds: Sequence[str | Named],
    settings: IngestSettings,
    as_of: datetime.datetime | None,
    tell: Callable[[Progress | Outcome | Failure], None],
) -> Guide:
    """Reads feeds and publishes a snapshot of what the catalogue knows, or finds the one that is there.

    Args:
        feeds: Paths, patterns, directories, URLs, references; or guides with dates. None is needed where
            there is an ``as_of``.
        as_of: The snapshot holds what was known then, by grabs made up to that instant; None is now.
        tell: Hears of progress, outcomes and failures.

    Raises:
        FeedError: No feed can be used, or not one that ``ingest.required`` names; what the others said is stored.
        HomeLocked: Another process has the catalogue open.
    """
    leave_no_downloads(workspace.home)
    told: list[Told] = []
    write_readings(workspace.home, told)
    with Catalogue.open(workspace.home) as catalogue:
        publish_status(catalogue)  # a run killed between its commit and this file is caught up with
        if feeds or as_of is None:
            for event in ingest_feeds(catalogue, feeds, settings, clock=time.monotonic, now=lambda: datetime.datetime.now(datetime.UTC)):
                tell(event)
                if isinstance(event, Outcome):
                    told.append(Told(source=event.source, programmes=event.counts.seen - event.counts.rejected, anomalies=event.anomalies))
                elif isinstance(event, Failure):
                    told.append(Told(source=event.source, failed=str(event.error)))
            write_readings(workspace.home, told)
        choice = Choice(leave_out=settings.leave_out, priority=settings.priority, as_of=as_of)
        digest = snapshot_digest(catalogue, choice)
        known = workspace.read(Guide, digest[:32])
        if known is not None:
            return known
        with workspace.publishing(Guide, digest[:32]) as draft:
            draft.counts |= snapshot(catalogue, draft.folder, choice)
            draft.details |= {"schema_version": catalogue.schema_version, "left_out": list(settings.leave_out), "as_of": as_of and as_of.isoformat()}
            draft.digest = digest
    return draft.artifact
