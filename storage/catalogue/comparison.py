"""A reading beside the one before it of the same source."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from storage.catalogue.connection import Catalogue


@dataclass(frozen=True, kw_only=True)
class Before:
    """The last earlier reading of a source that had any programme.

    Attributes:
        programmes: That could be read.
        grabbed_at: UTC without a zone.
    """

    programmes: int
    grabbed_at: datetime.datetime


def reading_before(
    catalogue: Catalogue, source: str, feed_id: int, grabbed_at: datetime.datetime
) -> Before | None:
    """The reading to compare reading ``feed_id`` of that source with."""
    rows = catalogue.connection.execute(
        """
        SELECT seen - rejected, grabbed_at
        FROM feeds
        WHERE source = $source AND seen > rejected AND (grabbed_at, feed_id) < ($grabbed_at, $feed_id)
        ORDER BY grabbed_at DESC, feed_id DESC
        LIMIT 1
        """,
        {"source": source, "feed_id": feed_id, "grabbed_at": grabbed_at},
    ).fetchall()
    return Before(programmes=rows[0][0], grabbed_at=rows[0][1]) if rows else None


def last_reading(catalogue: Catalogue, source: str) -> tuple[int, datetime.datetime]:
    """feed_id and grabbed_at of the newest reading of a known source."""
    return catalogue.connection.execute(
        "SELECT feed_id, grabbed_at FROM feeds WHERE source = ? ORDER BY grabbed_at DESC, feed_id DESC LIMIT 1",
        [source],
    ).fetchall()[0]


def end_of(catalogue: Catalogue, feed_id: int) -> datetime.datetime | None:
    """When the last programme of a reading ends, UTC without a zone; odd stops do not count. None: it has none."""
    return catalogue.connection.execute(
        "SELECT max(ends) FROM windows WHERE feed_id = ?", [feed_id]
    ).fetchall()[0][0]
