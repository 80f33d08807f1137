"""Lists guides with a date in their file names, so that they can be imported as versions of one feed."""

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.ingest.sources.feeds import FeedError, NamedFeed
from tasks.ingest.sources.resolve import resolve

_DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_.]?)(0[1-9]|1[0-2])(?:\2(0[1-9]|[12]\d|3[01]))?(?!\d)")


@dataclass(frozen=True, kw_only=True)
class DatedFeed(NamedFeed):
    """Guide with a date in its file name.

    Its ``source`` (name of the feed) has the placeholder ``{date}`` in place of the date, so that the guides
    of all dates are versions of one feed.
    """

    grabbed_at: datetime.datetime  # midnight of the date, with a time zone


def dated_guides(
    references: Sequence[str],
    first: datetime.date,
    last: datetime.date,
    zone: datetime.tzinfo,
    private_addresses: bool = False,
) -> list[DatedFeed]:
    """Lists the guides with a date from ``first`` to ``last`` (inclusive) in their file names, oldest first.

    A date has the form 2025-03-31, 20250331, or 2025-03 (the first of the month). It stands for midnight in
    ``zone``.

    Args:
        references: Paths, patterns, folders or URLs.
        first: First date of the range.
        last: Last date of the range.
        zone: Time zone of the dates.
        private_addresses: Whether patterns may be listed on hosts with private addresses.

    Raises:
        FeedError: No guide has a date in this range.
    """
    guides: list[DatedFeed] = []
    for feed in resolve(references, private_addresses):
        date, source = extract_date(feed.source)
        if date is not None and first <= date <= last:
            midnight = datetime.datetime.combine(date, datetime.time(), zone)
            guides.append(DatedFeed(location=feed.location, source=source, grabbed_at=midnight))
    if not guides:
        raise FeedError(
            f"{' '.join(references)}: no guide with a date from {first} to {last} in its name; expected "
            "names such as guide-2025-03-31.xml.gz"
        )
    return sorted(guides, key=lambda guide: (guide.grabbed_at, guide.location))


def extract_date(location: str) -> tuple[datetime.date | None, str]:
    """Returns the last date in the file name of a path or URL, and the location with ``{date}`` in its place.

    If the file name contains no date, returns None and the unchanged location.
    """
    name = Path(location).name
    folder = location.removesuffix(name)
    for match in reversed(list(_DATE.finditer(name))):
        try:
            date = datetime.date(int(match[1]), int(match[3]), int(match[4] or 1))
        except ValueError:
            continue
        return date, f"{folder}{name[: match.start()]}{{date}}{name[match.end() :]}"
    return None, location
