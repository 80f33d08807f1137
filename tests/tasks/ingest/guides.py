"""Builds small guides and reads them into a catalogue."""

import datetime
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from storage.catalogue.connection import Catalogue
from tasks.ingest.ingest import ingest_feeds
from tasks.ingest.results import FeedResult
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.resolve import resolve

NOW = datetime.datetime(2025, 3, 1, 4, 0, tzinfo=datetime.UTC)
SOUND = (
    '<programme channel="one" start="20250301{hour:02d}0000 +0000" stop="20250301{hour:02d}3000 +0000">'
    '<title lang="en">Show {hour}</title></programme>'
)


def guide(*content: str, programmes: int = 0) -> bytes:
    """Builds a guide with some valid programmes followed by the given elements."""
    sound = [SOUND.format(hour=hour) for hour in range(programmes)]
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<tv>\n' + "\n".join([*sound, *content]) + "\n</tv>\n"
    ).encode()


def locations(references: Sequence[str]) -> list[str]:
    """Returns the paths and URLs for references to feeds."""
    return [feed.location for feed in resolve(references)]


def read(home: Path, *feeds: object, **settings: Any) -> list[FeedResult]:
    """Reads feeds into the catalogue of a home."""
    with Catalogue.open(home) as catalogue:
        references = [str(feed) for feed in feeds]
        chosen = local_settings(**settings)
        events = ingest_feeds(catalogue, references, chosen, clock=lambda: 0.0, now=lambda: NOW)
        return [event for event in events if isinstance(event, FeedResult)]


def local_settings(**settings: Any) -> IngestSettings:
    """Settings that allow servers on loopback."""
    return IngestSettings(**{"private_addresses": True} | settings)


def only(home: Path, content: bytes, name: str = "g.xml", **settings: Any) -> FeedResult:
    """Writes a guide into the home and reads it; its counts must add up."""
    (home / name).write_bytes(content)
    (outcome,) = read(home, home / name, **settings)
    counts = outcome.counts
    assert counts.seen == counts.stored + counts.duplicates + counts.rejected
    return outcome


def rows(home: Path, query: str) -> list[tuple[Any, ...]]:
    """Runs a query on the catalogue of a home."""
    with Catalogue.open(home) as catalogue:
        return catalogue.connection.execute(query).fetchall()


def real_data() -> Path:
    """Returns the folder of real guides; skips the test if there is none."""
    folder = os.environ.get("GUIDESPACE_DATA")
    if not folder:
        pytest.skip("GUIDESPACE_DATA is not set: it names the folder of real guides")
    return Path(folder)
