"""Imports feeds into an open catalogue, one transaction per feed. Skips unchanged feeds."""

import datetime
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from storage.addresses import differ_in_secrets_only, without_secrets
from storage.artifacts import Progress
from storage.catalogue.connection import Catalogue
from storage.catalogue.feeds import (
    Counts,
    find_unchanged,
    list_sources,
    load_validators,
    newest_imports,
    publish_status,
    rename_sources,
    store_validators,
)
from storage.catalogue.ledger import FeedWriter, feed_writer
from tasks.ingest.anomalies import find_import_anomalies
from tasks.ingest.batches import ProgrammeBatch
from tasks.ingest.readers import read_batches
from tasks.ingest.results import Failure, FeedResult, format_reasons, raise_if_fatal
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.dates import DatedFeed
from tasks.ingest.sources.decompress import FeedStream
from tasks.ingest.sources.download import Validators, fetch
from tasks.ingest.sources.feeds import (
    GUIDE_SUFFIXES,
    Feed,
    FeedError,
    NamedFeed,
    is_url,
    unreadable_path_error,
)
from tasks.ingest.sources.resolve import locate

STEPS_PER_LOCATION = 1000  # in Progress
_END_REASONS = ("truncated", "damaged")  # reasons of rejects that concern the end of a file, not a programme


def ingest_feeds(
    catalogue: Catalogue,
    references: Sequence[str | NamedFeed],
    settings: IngestSettings,
    *,
    clock: Callable[[], float],
    now: Callable[[], datetime.datetime],
) -> Iterator[Progress | FeedResult | Failure]:
    """Imports feeds in order. Yields progress about once a second, and the result or failure of each feed.

    Args:
        references: Paths, patterns, folders, URLs and ``env:NAME``; or only DatedFeeds (past guides).
        clock: Function that returns seconds, for measuring intervals.
        now: Function that returns the current time with a time zone.

    Raises:
        FeedError: No feed can be read, or a required feed cannot be read. All readable feeds are stored.
    """
    dated_feeds = [feed for feed in references if isinstance(feed, DatedFeed)]
    if 0 < len(dated_feeds) < len(references):
        raise ValueError("DatedFeeds are mixed with other feeds; import them in separate calls")
    feeds, errors = (dated_feeds, []) if dated_feeds else locate(references, settings.private_addresses)
    failures = [Failure(source=source, error=error) for source, error in errors]
    yield from failures
    is_any_read = False
    reader = _FeedReader(catalogue, settings, clock, now, len(feeds))
    published_at = clock()
    with ExitStack() as stack:
        stack.callback(publish_status, catalogue)
        for feed in feeds:
            try:
                for event in reader.read(feed):
                    yield event
                    if isinstance(event, Failure):
                        failures.append(event)
                    elif isinstance(event, FeedResult):
                        is_any_read = True
                        # at most once a second, because publish_status counts all rows
                        if not event.unchanged and clock() - published_at > 1.0:
                            publish_status(catalogue)
                            published_at = clock()
            except FeedError as error:
                failures.append(Failure(source=feed.source, error=error))
                yield failures[-1]
            reader.finished_count += 1
            yield reader.progress()
    raise_if_fatal(failures, settings, is_any_read=is_any_read)


@dataclass
class _FeedReader:
    """Imports the feeds at paths and URLs (locations), and computes the progress over all of them."""

    catalogue: Catalogue
    settings: IngestSettings
    clock: Callable[[], float]
    now: Callable[[], datetime.datetime]
    location_count: int
    finished_count: int = 0  # number of finished locations
    programme_count: int = 0  # number of programmes that were read

    def __post_init__(self) -> None:
        self.last_report_at = self.clock()

    def read(self, named_feed: NamedFeed) -> Iterator[Progress | FeedResult | Failure]:
        """Fetches a path or URL, and writes the new and changed feeds in it to the catalogue."""
        catalogue, settings = self.catalogue, self.settings
        name, location = named_feed.source, named_feed.location
        grabbed_at = named_feed.grabbed_at if isinstance(named_feed, DatedFeed) else None
        if is_url(location):
            rename_old_sources(catalogue, location, name)
        last_imports = newest_imports(catalogue, name)
        is_same_zone = all(zone == settings.zone(source) for source, zone, _ in last_imports)
        is_comparable = bool(last_imports) and grabbed_at is None and is_same_zone
        etag, last_modified = load_validators(catalogue, name) if is_comparable else (None, None)
        validators = Validators(etag=etag, last_modified=last_modified)
        with ExitStack() as stack:  # removes downloaded files
            try:
                download = fetch(location, catalogue.home, settings, name, validators)
                fetch_result = stack.enter_context(download)
            except PermissionError as error:
                raise unreadable_path_error(name, error) from error
            if fetch_result.unchanged:
                for source, _, counts in last_imports:
                    yield self._feed_result(source, counts, grabbed_at)
            skipped_members, failure_count = fetch_result.skipped, 0
            for feed in fetch_result.feeds:
                zone = settings.zone(feed.source)
                counts = find_unchanged(catalogue, feed.source, feed.content_digest, grabbed_at, zone)
                try:
                    if counts is not None:
                        result = self._feed_result(feed.source, counts, grabbed_at)
                    else:
                        result = yield from self._read_feed(feed, grabbed_at)
                except FeedError as error:
                    failure_count += 1
                    yield Failure(source=feed.source, error=error)
                else:
                    yield replace(result, skipped=skipped_members)
                    skipped_members = ()
            is_new = not (fetch_result.unchanged or failure_count)
            if fetch_result.validators is not None and is_new and grabbed_at is None:
                validators = fetch_result.validators
                store_validators(catalogue, name, validators.etag, validators.last_modified)

    def _read_feed(
        self, feed: Feed, grabbed_at: datetime.datetime | None
    ) -> Generator[Progress, None, FeedResult]:
        """Writes a feed to the catalogue in one transaction. Yields progress, and returns the result."""
        zone = self.settings.zone(feed.source)
        stream = FeedStream(feed, self.settings.size_cap_bytes)
        with feed_writer(
            self.catalogue,
            source=feed.source,
            content_digest=feed.content_digest,
            size=feed.bytes,
            read_at=self.now(),
            grabbed_at=grabbed_at,
            zone=zone,
        ) as writer:
            yield from self._write(read_batches(stream, self.settings.batch_rows, zone), writer)
            return self._feed_result(feed.source, writer.finish(), grabbed_at, writer)

    def _feed_result(
        self,
        source: str,
        counts: Counts,
        grabbed_at: datetime.datetime | None,
        writer: FeedWriter | None = None,
    ) -> FeedResult:
        """Returns the result of importing a feed. ``writer`` is None if the feed is unchanged.

        Raises:
            FeedError: The feed is required and has anomalies. It is not stored.
        """
        anomalies: tuple[str, ...] = ()
        if writer is not None or not grabbed_at:
            today = None if grabbed_at else self.now().date()
            anomalies = find_import_anomalies(self.catalogue, source, counts, writer, today)
        if anomalies and self.settings.is_required(source):
            raise FeedError(f"{source}: {'; '.join(anomalies)}")
        reasons = writer.reasons if writer else {}
        return FeedResult(
            source=source, counts=counts, reasons=reasons, unchanged=writer is None, anomalies=anomalies
        )

    def _write(self, batches: Iterator[ProgrammeBatch], writer: FeedWriter) -> Iterator[Progress]:
        """Adds the batches of a feed to its writer and yields progress.

        Raises:
            FeedError: Nothing in the feed can be read, or too many programmes are rejected.
        """
        for batch in batches:
            writer.add_programmes(batch.programmes, batch.details, batch.originals)
            writer.invalid_bytes += batch.invalid_bytes
            if batch.root.num_rows:
                writer.add_root(batch.root)
            if batch.channels.num_rows:
                writer.add_channels(batch.channels)
            if batch.rejects.num_rows:
                writer.add_rejects(batch.rejects)
            self.programme_count += batch.programmes.num_rows
            if (now := self.clock()) - self.last_report_at >= 1.0:
                self.last_report_at = now
                yield self.progress(batch.share_read)
        source, reasons = writer.grab.source, format_reasons(writer.reasons)
        if writer.rejected and not writer.staged_count and not writer.channels:
            raise FeedError(f"{source}: nothing in it can be read ({reasons}); fetch it again, or remove it")
        rejected_count = writer.rejected - sum(writer.reasons.get(reason, 0) for reason in _END_REASONS)
        max_share, total = self.settings.max_reject_share, writer.staged_count + rejected_count
        if rejected_count > max_share * total:
            raise FeedError(
                f"{source}: {rejected_count:,} of {total:,} programmes cannot be read ({reasons}), "
                f"more than {max_share:.0%}; nothing was stored. "
                "Repair the feed, or raise ingest.max_reject_share"
            )

    def progress(self, share: float = 0.0) -> Progress:
        """Returns the progress over all locations; ``share`` of the current location has been read."""
        feed = f"feed {min(self.finished_count + 1, self.location_count)} of {self.location_count}"
        return Progress(
            step=round(STEPS_PER_LOCATION * (self.finished_count + share)),
            total=STEPS_PER_LOCATION * self.location_count,
            metrics={"programmes": float(self.programme_count)},
            note=f"{feed}, {share:.0%} of its bytes, {self.programme_count:,} programmes",
        )


def remove_old_downloads(home: Path) -> None:
    """Removes downloaded files that killed runs have left in the folder ``downloads`` of a home."""
    for file in (home / "downloads").glob("*"):
        file.unlink(missing_ok=True)


def rename_old_sources(catalogue: Catalogue, url: str, name: str) -> None:
    """Replaces the names under which earlier versions stored the feeds at ``url`` by ``name``.

    Earlier versions kept most query parameters in the name (source) of a feed, so that a URL with a new token
    was a new feed each night. Nothing is renamed if the catalogue already contains the name ``name``.
    """
    public_url, new_names = without_secrets(url), {}
    for source in list_sources(catalogue):
        address, separator, member = source.partition("!")
        if not member.lower().endswith(GUIDE_SUFFIXES):  # not a guide in a zip
            address, separator, member = source, "", ""
        if address == name:
            return
        is_same_url = is_url(address) and without_secrets(address) == public_url
        if is_same_url and differ_in_secrets_only(address, url):
            new_names[source] = name + separator + member
    if new_names:
        rename_sources(catalogue, new_names)
