"""Imports feeds and publishes a Guide (a snapshot of the catalogue as Parquet files), without Prefect."""

import datetime
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial

from storage.artifacts import Guide, Progress
from storage.catalogue.connection import Catalogue
from storage.catalogue.corrections import publish_corrections
from storage.catalogue.feeds import publish_status, require_feed_before
from storage.catalogue.snapshots import SnapshotOptions, included_feeds, snapshot_digest, write_snapshot
from storage.home.guides import current_guide
from storage.home.readings import FeedStatus, write_readings
from storage.home.workspace import Workspace
from storage.home.zones import home_zone
from tasks.ingest.ingest import ingest_feeds, remove_old_downloads
from tasks.ingest.results import Failure, FeedResult
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.feeds import NamedFeed


def read_and_publish(
    workspace: Workspace,
    feeds: Sequence[str | NamedFeed],
    settings: IngestSettings,
    as_of: datetime.datetime | None,
    report: Callable[[Progress | FeedResult | Failure], None],
) -> Guide:
    """Imports feeds and publishes a snapshot of the catalogue, unless an equal snapshot is already published.

    Args:
        feeds: Paths, patterns, folders, URLs, ``env:NAME``; or only DatedFeeds; or none if ``as_of`` is set.
        as_of: Time of the snapshot, with a time zone; None means now.
        report: Function that receives progress, results and failures.

    Raises:
        FeedError: No feed can be read, or a required feed cannot be read. All readable feeds are stored.
        HomeLocked: Another process has the catalogue open.
    """
    remove_old_downloads(workspace.home)
    write_readings(workspace.home, [])
    with Catalogue.open(workspace.home) as catalogue:
        publish_status(catalogue)  # status.json is outdated if a run was killed after a commit
        publish_corrections(catalogue)
        if feeds or as_of is None:
            _read_feeds(catalogue, feeds, settings, report)
        if as_of is not None:
            require_feed_before(catalogue, as_of)
        zone, leave_out = home_zone(workspace.home).key, settings.leave_out
        options = SnapshotOptions(leave_out=leave_out, priority=settings.priority, as_of=as_of, zone=zone)
        digest = snapshot_digest(catalogue, options)
        if (guide := workspace.read(Guide, digest[:32])) is not None:
            if as_of is None and current_guide(workspace) != guide:
                workspace.publish_again(guide)  # a setting was changed, then changed back
            return guide
        with workspace.publishing(Guide, digest[:32]) as draft:
            draft.counts |= write_snapshot(catalogue, draft.folder, options)
            draft.details |= {
                "schema_version": catalogue.schema_version,
                "left_out": list(leave_out),
                "as_of": as_of and as_of.isoformat(),
            }
            draft.made_of = {
                "stage": "ingest",
                "inputs": [
                    {"kind": "Feed", "path": source, "digest": content_digest}
                    for _, source, content_digest, _ in included_feeds(catalogue, options)
                ],
                "settings": [["Choice", {**asdict(options), "as_of": as_of and as_of.isoformat()}]],
            }
            draft.digest = digest
    return draft.artifact


def _read_feeds(
    catalogue: Catalogue,
    feeds: Sequence[str | NamedFeed],
    settings: IngestSettings,
    report: Callable[[Progress | FeedResult | Failure], None],
) -> None:
    """Imports feeds. Writes their results to readings.json, even if a failure is fatal."""
    readings: list[FeedStatus] = []
    now = partial(datetime.datetime.now, datetime.UTC)
    try:
        for event in ingest_feeds(catalogue, feeds, settings, clock=time.monotonic, now=now):
            report(event)
            if not isinstance(event, Progress):
                readings.append(event.status())
    finally:
        write_readings(catalogue.home, readings)
