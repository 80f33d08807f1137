"""Lists guides with a date in their name; they become one source with a history."""

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.ingest.sources.feeds import FeedError, NamedFeed, source_of
from tasks.ingest.sources.resolve import resolve

_DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_.]?)(0[1-9]|1[0-2])(?:\2(0[1-9]|[12]\d|3[01]))?(?!\d)")


@dataclass(frozen=True, kw_only=True)
class DatedFeed(NamedFeed):
    """A guide with a date in its name; its source contains ``{date}`` in place of the date."""

    grabbed_at: datetime.datetime  # with a time zone


def dated_guides(
    references: Sequence[str],
    first: datetime.date,
    last: datetime.date,
    zone: datetime.tzinfo,
    private_addresses: bool = False,
) -> list[DatedFeed]:
    """Lists the guides with a date from ``first`` to ``last`` (inclusive) in their names, oldest first.

    A date is written 2025-03-31, 20250331, or 2025-03 (first of the month), and means midnight in ``zone``.

    Raises:
        FeedError: No guide has a date in that range.
    """
    guides: list[DatedFeed] = []
    for feed in resolve(references, private_addresses):
        date, source = date_of(source_of(feed))
        if date is not None and first <= date <= last:
            location = feed.location if isinstance(feed, NamedFeed) else feed
            midnight = datetime.datetime.combine(date, datetime.time(), zone)
            guides.append(DatedFeed(location=location, source=source, grabbed_at=midnight))
    if not guides:
        problem = f"no guide with a date from {first} to {last} in its name"
        raise FeedError(f"{' '.join(references)}: {problem}; expected names such as guide-2025-03-31.xml.gz")
    return sorted(guides, key=lambda guide: (guide.grabbed_at, guide.location))


def date_of(location: str) -> tuple[datetime.date | None, str]:
    """Returns the last date in a file name, and the location with ``{date}`` in its place."""
    name = Path(location).name
    folder = location.removesuffix(name)
    for match in reversed(list(_DATE.finditer(name))):
        try:
            date = datetime.date(int(match[1]), int(match[3]), int(match[4] or 1))
        except ValueError:
            continue
        return date, f"{folder}{name[: match.start()]}{{date}}{name[match.end() :]}"
    return None, location
