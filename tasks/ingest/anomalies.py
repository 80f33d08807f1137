"""What is odd about a reading: nothing in it, far less than the last time, or nothing to come."""

from __future__ import annotations

import datetime

from storage.catalogue.comparison import end_of, last_reading, reading_before
from storage.catalogue.connection import Catalogue
from storage.catalogue.ledger import Counts, Reading

FEW = 0.5  # of the programmes of the reading before; as for a day's programmes (checks.py)


def reading_anomalies(
    catalogue: Catalogue, source: str, counts: Counts, draft: Reading | None, today: datetime.date | None
) -> tuple[str, ...]:
    """In words, without the source.

    Args:
        counts: Of the reading.
        draft: The reading, settled and not yet committed; None where the feed is unchanged: its last one.
        today: UTC; None for a guide read after the fact, which may end when it likes.
    """
    feed_id, grabbed_at = (draft.grab.feed_id, draft.grab.at) if draft else last_reading(catalogue, source)
    before = reading_before(catalogue, source, feed_id, grabbed_at)
    found = []
    programmes = counts.seen - counts.rejected
    if not programmes or (before and programmes < FEW * before.programmes):
        last = f", {before.programmes:,} in its reading of {before.grabbed_at:%Y-%m-%d}" if before else ""
        found.append(f"{programmes:,} programmes{last}")
    ends = end_of(catalogue, feed_id)
    if today and ends and ends.date() < today:
        found.append(f"the guide ends on {ends:%Y-%m-%d %H:%M} UTC, before today")
    return tuple(found)
