"""Guides with a date in their name: one source with a history."""

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.ingest.sources.feeds import FeedError, Named, source_of
from tasks.ingest.sources.resolve import resolve

_DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_.]?)(0[1-9]|1[0-2])(?:\2(0[1-9]|[12]\d|3[01]))?(?!\d)")


@dataclass(frozen=True, kw_only=True)
class Dated(Named):
    """A guide read after the fact; its source has ``{date}`` for the date, ``grabbed_at`` a time zone."""

    grabbed_at: datetime.datetime


def dated_guides(
    given: Sequence[str],
    first: datetime.date,
    last: datetime.date,
    zone: datetime.tzinfo,
    private_addresses: bool = False,
) -> list[Dated]:
    """The guides whose names hold a date from ``first`` to ``last``, both included, oldest first.

    A date is 2025-03-31, 20250331, or 2025-03 for the first of the month; it means midnight in ``zone``.

    Raises:
        FeedError: None has a date in that span.
    """
    found: list[Dated] = []
    for feed in resolve(given, private_addresses):
        date, source = date_of(source_of(feed))
        if date is not None and first <= date <= last:
            location = feed.location if isinstance(feed, Named) else feed
            midnight = datetime.datetime.combine(date, datetime.time(), zone)
            found.append(Dated(location=location, source=source, grabbed_at=midnight))
    if not found:
        problem = f"no guide with a date from {first} to {last} in its name"
        raise FeedError(f"{' '.join(given)}: {problem}; expected names such as guide-2025-03-31.xml.gz")
    return sorted(found, key=lambda guide: (guide.grabbed_at, guide.location))


def date_of(location: str) -> tuple[datetime.date | None, str]:
    """The last date in a file's name, and the location with ``{date}`` in its place."""
    name = Path(location).name
    folder = location.removesuffix(name)
    for match in reversed(list(_DATE.finditer(name))):
        try:
            date = datetime.date(int(match[1]), int(match[3]), int(match[4] or 1))
        except ValueError:
            continue
        return date, f"{folder}{name[: match.start()]}{{date}}{name[match.end() :]}"
    return None, location
