"""Feeds into an open catalogue: each one a transaction, each one counted, an unchanged one not even parsed."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from storage.artifacts import Progress
from storage.catalogue.connection import Catalogue
from storage.catalogue.ledger import Counts, Reading, has_read, reading
from storage.catalogue.status import publish_status
from tasks.ingest.feeds import Feed, FeedError, at_hand, resolve
from tasks.ingest.progress import Meter
from tasks.ingest.settings import IngestSettings
from tasks.ingest.streams import FeedStream
from tasks.ingest.xmltv import read_batches

CUT = ("truncated", "damaged")  # one an interrupted file: they tell of its end, not of its programmes


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What reading a feed came to.

    Attributes:
        source: The feed.
        counts: Of this reading; of the earlier one where the feed is unchanged.
        reasons: Why programmes were rejected, with their numbers.
        unchanged: Whether these bytes were read before, and nothing was done.
    """

    source: str
    counts: Counts
    reasons: dict[str, int]
    unchanged: bool

    def __str__(self) -> str:
        counts = f"{self.counts.seen:,} programmes seen, {self.counts.stored:,} stored, {self.counts.duplicates:,} duplicates, {self.counts.rejected:,} rejected"
        reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(self.reasons.items()))
        return f"{self.source}: {'unchanged (' if self.unchanged else ''}{counts}{')' if self.unchanged else ''}{f' ({reasons})' if reasons else ''}"


def ingest_feeds(
    catalogue: Catalogue,
    given: Sequence[str],
    settings: IngestSettings,
    *,
    clock: Callable[[], float],
    now: Callable[[], datetime.datetime],
) -> Iterator[Progress | Outcome]:
    """Reads feeds one after another; yields progress about once a second and an outcome a feed.

    Args:
        catalogue: Open.
        given: Paths, patterns, directories, http(s) URLs.
        settings: Caps and thresholds.
        clock: Seconds, rising (when to speak again).
        now: The instant, with a time zone (when a feed was read).

    Raises:
        FeedError: A feed cannot be used. Of it nothing is stored; feeds before it are.
    """
    locations = resolve(given)
    meter = Meter(clock, len(locations))
    for location in locations:
        with at_hand(location, catalogue.home, settings.size_cap_bytes) as feeds:
            for feed in feeds:
                known = has_read(catalogue, feed.source, feed.content_digest)
                if known is not None:
                    yield Outcome(source=feed.source, counts=known, reasons={}, unchanged=True)
                    continue
                with reading(catalogue, source=feed.source, content_digest=feed.content_digest, size=feed.bytes, read_at=now()) as draft:
                    yield from _read(feed, draft, settings, meter)
                    counts = draft.settle()
                publish_status(catalogue)
                yield Outcome(source=feed.source, counts=counts, reasons=draft.reasons, unchanged=False)
        meter.done += 1
        yield meter.state()


def _read(feed: Feed, draft: Reading, settings: IngestSettings, meter: Meter) -> Iterator[Progress]:
    """Streams a feed into its transaction; raises when too much of it is rejected."""
    for batch in read_batches(FeedStream(feed, settings.size_cap_bytes), settings.batch_rows):
        draft.add_programmes(batch.programmes)
        if batch.channels.num_rows:
            draft.add_channels(batch.channels)
        if batch.rejects.num_rows:
            draft.add_rejects(batch.rejects)
        progress = meter.read(batch.share_read, batch.programmes.num_rows)
        if progress is not None:
            yield progress
    rejected = draft.rejected - sum(draft.reasons.get(reason, 0) for reason in CUT)
    if rejected > settings.max_reject_share * (draft.staged + rejected):
        reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(draft.reasons.items()))
        raise FeedError(
            f"{feed.source}: {rejected:,} of {draft.staged + rejected:,} programmes cannot be read ({reasons}), more than {settings.max_reject_share:.0%}; "
            "nothing was stored. Mend the feed, or raise ingest.max_reject_share"
        )


def leave_no_downloads(home: Path) -> None:
    """Removes what a killed run had downloaded."""
    for file in (home / "downloads").glob("*"):
        file.unlink(missing_ok=True)
