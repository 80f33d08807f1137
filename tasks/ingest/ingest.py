"""Feeds into an open catalogue: each one a transaction, each one counted, an unchanged one not even parsed."""

from __future__ import annotations

import datetime
import os
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from storage.artifacts import Progress
from storage.catalogue.connection import Catalogue
from storage.catalogue.ledger import Counts, Reading, has_read, reading
from storage.catalogue.status import publish_status
from storage.catalogue.validators import last_readings, note_validators, recall_validators
from tasks.ingest.anomalies import reading_anomalies
from tasks.ingest.dated import Dated
from tasks.ingest.download import Limits, Validators
from tasks.ingest.feeds import AtHand, Feed, FeedError, Named, at_hand, is_url, source_of
from tasks.ingest.identity import adopt_former_names
from tasks.ingest.outcomes import Failure, Outcome, locate, stop_if_needed, unreadable
from tasks.ingest.parallel import Parsing, Pool, open_pool
from tasks.ingest.progress import Meter
from tasks.ingest.settings import IngestSettings
from tasks.ingest.streams import FeedStream
from tasks.ingest.xmltv import Batch, read_batches

CUT = ("truncated", "damaged")  # one an interrupted file: they tell of its end, not of its programmes


def ingest_feeds(
    catalogue: Catalogue,
    given: Sequence[str | Named],
    settings: IngestSettings,
    *,
    clock: Callable[[], float],
    now: Callable[[], datetime.datetime],
) -> Iterator[Progress | Outcome | Failure]:
    """Reads feeds, in the order given; yields progress about once a second and an outcome or a failure a feed.

    Args:
        catalogue: Open.
        given: Paths, patterns, directories, URLs, references; or guides with dates, all resolved.
        settings: Caps, thresholds, and how many feeds are parsed at a time.
        clock: Seconds, rising (when to speak again).
        now: The instant, with a time zone (when a feed was read).

    Raises:
        FeedError: No feed can be used, or not one that ``ingest.required`` names. Of it nothing is stored; all others were read.
    """
    dated = [each for each in given if isinstance(each, Dated)]
    locations, failures = (dated, []) if dated else locate([each for each in given if not isinstance(each, Dated)])
    yield from failures
    is_any_read = False
    meter = Meter(clock, len(locations))
    written = clock()
    begun: deque[_Begun] = deque()
    with ExitStack() as stack:
        parallel = settings.workers > 1 and len(locations) > 1
        stack.callback(shutil.rmtree, catalogue.home / "parsed", ignore_errors=True)  # after the pool: of feeds parsed ahead of one that fails
        pool = stack.enter_context(open_pool(settings)) if parallel else None
        ahead = 2 * settings.workers if parallel else 0
        stack.callback(publish_status, catalogue)
        for place, location in enumerate([*locations, *[None] * ahead]):
            if location is not None:
                own = None if pool is not None and pool.helped and not place else pool  # this process would only wait for the first
                begun.append(_begin(catalogue, location, settings, own, catalogue.home / "parsed" / f"{os.getpid()}.{place}"))
                stack.push(begun[-1].stack)
            if begun and (location is None or len(begun) > ahead):
                current = begun.popleft()
                later = [parsing for each in begun for _, _, parsing in each.feeds if parsing is not None]
                try:
                    for event in _finish(catalogue, current, later, settings, meter, now):
                        yield event
                        is_any_read |= isinstance(event, Outcome)
                        if isinstance(event, Outcome) and not event.unchanged and clock() - written > 1.0:  # it counts the whole catalogue
                            publish_status(catalogue)
                            written = clock()
                except FeedError as error:
                    failures.append(Failure(source=current.name, error=error))
                    yield failures[-1]
                meter.done += 1
                yield meter.state()
    stop_if_needed(failures, settings, is_any_read=is_any_read)


@dataclass
class _Begun:
    """A location at hand, its feeds being parsed (or about to be); or why it is not, to be told in its turn."""

    stack: ExitStack
    name: str
    hand: AtHand
    grabbed_at: datetime.datetime | None
    feeds: list[tuple[Feed, Counts | None, Parsing | None]]  # each with its earlier counts if it is unchanged, and who parses it if not this process
    problem: FeedError | None = None


def _begin(
    catalogue: Catalogue, location: str | Named, settings: IngestSettings, pool: Pool | None, folder: Path
) -> _Begun:
    """Fetches a location and starts parsing what is new of it."""
    name = source_of(location)
    place = location.location if isinstance(location, Named) else location
    grabbed_at = location.grabbed_at if isinstance(location, Dated) else None
    if is_url(place):
        adopt_former_names(catalogue, place, name)
    last = last_readings(catalogue, name)
    zones_hold = all(zone == settings.zone(source) for source, zone, _ in last)
    as_set = bool(last) and grabbed_at is None and zones_hold
    etag, last_modified = recall_validators(catalogue, name) if as_set else (None, None)
    validators = Validators(etag=etag, last_modified=last_modified)
    limits = Limits(
        size_cap_bytes=settings.size_cap_bytes,
        seconds=settings.download_seconds,
        bytes_per_second=settings.download_bytes_per_second,
    )
    stack = ExitStack()
    with stack:
        try:
            hand = stack.enter_context(at_hand(place, catalogue.home, limits, name, validators))
        except FeedError as error:
            return _Begun(ExitStack(), name, AtHand(feeds=[]), grabbed_at, [], error)
        except PermissionError as error:
            return _Begun(ExitStack(), name, AtHand(feeds=[]), grabbed_at, [], unreadable(name, error))
        feeds = []
        for number, feed in enumerate(hand.feeds):
            counts = has_read(catalogue, feed.source, feed.content_digest, grabbed_at, settings.zone(feed.source))
            parsing = Parsing(pool, feed, settings, folder.with_name(f"{folder.name}.{number}")) if pool is not None and counts is None else None
            feeds.append((feed, counts, parsing))
        return _Begun(stack.pop_all(), name, hand, grabbed_at, feeds)


def _finish(
    catalogue: Catalogue, begun: _Begun, later: list[Parsing], settings: IngestSettings, meter: Meter, now: Callable[[], datetime.datetime]
) -> Iterator[Progress | Outcome]:
    """Writes the feeds of a location, each in a transaction of its own; ``later`` are those of the locations after it."""
    with begun.stack:
        if begun.problem is not None:
            raise begun.problem
        if begun.hand.unchanged:
            for source, _, counts in last_readings(catalogue, begun.name):
                yield _unchanged(catalogue, source, counts, settings, begun.grabbed_at, now)
        for number, (feed, known, parsing) in enumerate(begun.feeds):
            if known is not None:
                yield _unchanged(catalogue, feed.source, known, settings, begun.grabbed_at, now)
                continue
            zone = settings.zone(feed.source)
            if parsing is None:
                batches = read_batches(FeedStream(feed, settings.size_cap_bytes), settings.batch_rows, zone)
            else:
                batches = parsing.batches([*(further for *_, further in begun.feeds[number + 1 :] if further is not None), *later])
            with reading(
                catalogue, source=feed.source, content_digest=feed.content_digest, size=feed.bytes, read_at=now(), grabbed_at=begun.grabbed_at, zone=zone
            ) as draft:
                yield from _write(feed, batches, draft, settings, meter)
                counts = draft.settle()
                anomalies = reading_anomalies(catalogue, feed.source, counts, draft, None if begun.grabbed_at else now().date())
                _refuse_anomalies(feed.source, anomalies, settings)
            yield Outcome(source=feed.source, counts=counts, reasons=draft.reasons, unchanged=False, anomalies=anomalies)
        validators = begun.hand.validators
        if validators is not None and not begun.hand.unchanged and begun.grabbed_at is None:
            note_validators(catalogue, begun.name, validators.etag, validators.last_modified)


def _unchanged(
    catalogue: Catalogue,
    source: str,
    counts: Counts,
    settings: IngestSettings,
    grabbed_at: datetime.datetime | None,
    now: Callable[[], datetime.datetime],
) -> Outcome:
    """The outcome of a feed whose bytes were read before; what was odd about them still is, but for a dated guide."""
    anomalies = () if grabbed_at else reading_anomalies(catalogue, source, counts, None, now().date())
    _refuse_anomalies(source, anomalies, settings)
    return Outcome(source=source, counts=counts, reasons={}, unchanged=True, anomalies=anomalies)


def _refuse_anomalies(source: str, anomalies: Sequence[str], settings: IngestSettings) -> None:
    """Raises for an odd reading of a source that ``ingest.required`` names: not stored, it is not compared with later."""
    if anomalies and settings.is_required(source):
        raise FeedError(f"{source}: {'; '.join(anomalies)}")


def _write(feed: Feed, batches: Iterator[Batch], draft: Reading, settings: IngestSettings, meter: Meter) -> Iterator[Progress]:
    """Streams a feed into its transaction; raises when too much of it is rejected."""
    for batch in batches:
        draft.add_programmes(batch.programmes, batch.details, batch.originals)
        if batch.root.num_rows:
            draft.add_root(batch.root)
        if batch.channels.num_rows:
            draft.add_channels(batch.channels)
        if batch.rejects.num_rows:
            draft.add_rejects(batch.rejects)
        progress = meter.read(batch.share_read, batch.programmes.num_rows)
        if progress is not None:
            yield progress
    if draft.rejected and not draft.staged and not draft.channels:
        raise FeedError(f"{feed.source}: nothing in it can be read ({_in_words(draft.reasons)}); fetch it again, or leave it out")
    rejected = draft.rejected - sum(draft.reasons.get(reason, 0) for reason in CUT)
    if rejected > settings.max_reject_share * (draft.staged + rejected):
        raise FeedError(
            f"{feed.source}: {rejected:,} of {draft.staged + rejected:,} programmes cannot be read ({_in_words(draft.reasons)}), more than {settings.max_reject_share:.0%}; "
            "nothing was stored. Mend the feed, or raise ingest.max_reject_share"
        )


def _in_words(reasons: dict[str, int]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))


def leave_no_downloads(home: Path) -> None:
    """Removes what a killed run had downloaded or parsed."""
    shutil.rmtree(home / "parsed", ignore_errors=True)
    for file in (home / "downloads").glob("*"):
        file.unlink(missing_ok=True)
