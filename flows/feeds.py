"""Ingest alone: one run's feeds, or a folder of dated guides."""

from __future__ import annotations

import datetime

from prefect import flow

from storage.artifacts import Guide
from storage.workspace import Workspace
from tasks.ingest.dated import dated_guides
from tasks.ingest.settings import IngestSettings
from tasks.ingest.task import check, ingest

DEFAULTS = IngestSettings()


@flow(name="ingest")
def ingest_feeds(feeds: list[str], home: str = "guidespace-home", settings: IngestSettings = DEFAULTS) -> Guide:
    """Reads feeds, publishes the Guide and checks it.

    Args:
        feeds: XMLTV files, globs, folders or URLs; plain or compressed.
        home: Folder that holds everything a run writes.
        settings: Of the ingest stage; ``workers`` feeds are parsed at a time.
    """
    with Workspace(home).writing(f"ingest of {len(feeds)} feed{'s' if len(feeds) != 1 else ''}"):
        guide = ingest(home, feeds, settings)
        check(home, guide)
        return guide


@flow(name="backfill")
def backfill(feeds: list[str], first: datetime.date, last: datetime.date, home: str = "guidespace-home", settings: IngestSettings = DEFAULTS) -> Guide:
    """Reads guides with a date in their name as what was said on that date; parsed side by side, written by one process.

    Args:
        feeds: Folders or patterns of dated guides (guide-2025-03-31.xml.gz).
        first: First date.
        last: Last date, included.
        home: Folder that holds everything a run writes.
        settings: Of the ingest stage; ``workers`` and ``pool`` say where the parsing is done.
    """
    with Workspace(home).writing(f"backfill from {first} to {last}"):
        guide = ingest(home, dated_guides(feeds, first, last), settings)
        check(home, guide)
        return guide
