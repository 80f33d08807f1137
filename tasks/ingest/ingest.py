"""Feeds into an open catalogue: one transaction each; an unchanged one is not parsed."""

import datetime
import os
import shutil
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from storage.addresses import differ_in_secrets_only, without_secrets
from storage.artifacts import Progress
from storage.catalogue.connection import Catalogue
from storage.catalogue.feeds import (
    Counts,
    find_unchanged,
    list_sources,
    load_validators,
    newest_readings,
    publish_status,
    rename_sources,
    store_validators,
)
from storage.catalogue.ledger import FeedWriter, reading
from tasks.ingest.batches import ProgrammeBatch
from tasks.ingest.checks import reading_anomalies
from tasks.ingest.parallel import Parsing
from tasks.ingest.readers import read_batches
from tasks.ingest.results import Failure, FeedResult, reasons_text, stop_if_needed
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.dates import Dated
from tasks.ingest.sources.decompress import FeedStream
from tasks.ingest.sources.download import Fetched, Limits, Validators, fetch
from tasks.ingest.sources.feeds import PLAIN, Feed, FeedError, Named, is_url, source_of, unreadable
from tasks.ingest.sources.resolve import locate
from tasks.pool import Submit, open_pool

_CUT = ("truncated", "damaged")  # one an interrupted file: they concern its end, not its programmes


def ingest_feeds(
    catalogue: Catalogue,
    given: Sequence[str | Named],
    settings: IngestSettings,
    *,
    clock: Callable[[], float],
    now: Callable[[], datetime.datetime],
) -> Iterator[Progress | FeedResult | Failure]:
    """Reads feeds in the order given; yields progress about once a second and a result or failure per feed.

    Args:
        given: Paths, patterns, directories, URLs, references; or guides with dates, all resolved.
        now: With a time zone.

    Raises:
        FeedError: No feed can be used, or not one that ``ingest.required`` names; the others are stored.
    """
    dated = [each for each in given if isinstance(each, Dated)]
    locations, errors = (dated, []) if dated else locate(given, settings.private_addresses)
    failures = [Failure(source=source, error=error) for source, error in errors]
    yield from failures
    is_any_read = False
    reader = _FeedReader(catalogue, settings, clock, now, len(locations))
    published = clock()
    queue: deque[_Location] = deque()
    with ExitStack() as stack:
        is_parallel = settings.workers > 1 and len(locations) > 1
        # after the pool: of feeds parsed ahead of one that fails
        stack.callback(shutil.rmtree, catalogue.home / "parsed", ignore_errors=True)
        others = open_pool(settings.pool, settings.workers - settings.is_helped, settings.pool_address)
        pool = stack.enter_context(others) if is_parallel else None
        ahead = 2 * settings.workers if is_parallel else 0
        stack.callback(publish_status, catalogue)
        for place, location in enumerate([*locations, *[None] * ahead]):
            if location is not None:
                # this process would only wait for the first feed
                own = None if settings.is_helped and not place else pool
                queue.append(reader.open(location, own, catalogue.home / "parsed" / f"{os.getpid()}.{place}"))
                stack.push(queue[-1].stack)
            if queue and (location is None or len(queue) > ahead):
                current = queue.popleft()
                later = [parsing for each in queue for _, _, parsing in each.feeds if parsing is not None]
                try:
                    for event in reader.read(current, later):
                        yield event
                        is_any_read |= isinstance(event, FeedResult)
                        failures += [event] if isinstance(event, Failure) else []
                        is_new = isinstance(event, FeedResult) and not event.unchanged
                        if is_new and clock() - published > 1.0:  # it counts the whole catalogue
                            publish_status(catalogue)
                            published = clock()
                except FeedError as error:
                    failures.append(Failure(source=current.name, error=error))
                    yield failures[-1]
                reader.done += 1
                yield reader.progress()
    stop_if_needed(failures, settings, is_any_read=is_any_read)


@dataclass
class _Location:
    """A fetched location, its feeds being parsed (or about to be); ``problem`` is raised when it is read."""

    name: str
    grabbed_at: datetime.datetime | None
    stack: ExitStack = field(default_factory=ExitStack)
    fetched: Fetched = field(default_factory=Fetched)
    # each with its earlier counts if it is unchanged, and who parses it if not this process
    feeds: list[tuple[Feed, Counts | None, Parsing | None]] = field(default_factory=list)
    problem: FeedError | None = None


@dataclass
class _FeedReader:
    catalogue: Catalogue
    settings: IngestSettings
    clock: Callable[[], float]
    now: Callable[[], datetime.datetime]
    locations: int
    done: int = 0
    programmes: int = 0

    def __post_init__(self) -> None:
        self.reported = self.clock()

    def open(self, location: str | Named, pool: Submit | None, folder: Path) -> _Location:
        """Fetches a location and starts parsing what is new of it, into folders beside ``folder``."""
        catalogue, settings = self.catalogue, self.settings
        name = source_of(location)
        address = location.location if isinstance(location, Named) else location
        found = _Location(name, location.grabbed_at if isinstance(location, Dated) else None)
        if is_url(address):
            adopt_former_names(catalogue, address, name)
        last = newest_readings(catalogue, name)
        zones_hold = all(zone == settings.zone(source) for source, zone, _ in last)
        is_comparable = bool(last) and found.grabbed_at is None and zones_hold
        etag, last_modified = load_validators(catalogue, name) if is_comparable else (None, None)
        known = Validators(etag=etag, last_modified=last_modified)
        limits = Limits.of(settings)
        try:
            found.fetched = found.stack.enter_context(fetch(address, catalogue.home, limits, name, known))
        except FeedError as error:
            found.problem = error
        except PermissionError as error:
            found.problem = unreadable(name, error)
        for number, feed in enumerate(found.fetched.feeds):
            zone = settings.zone(feed.source)
            counts = find_unchanged(catalogue, feed.source, feed.content_digest, found.grabbed_at, zone)
            place = folder.with_name(f"{folder.name}.{number}")
            parsing = Parsing(pool, feed, settings, place) if pool and counts is None else None
            found.feeds.append((feed, counts, parsing))
        return found

    def read(self, location: _Location, later: list[Parsing]) -> Iterator[Progress | FeedResult | Failure]:
        """Writes the feeds of a location; ``later`` are those of the locations after it."""
        with location.stack:
            if location.problem is not None:
                raise location.problem
            fetched = location.fetched
            if fetched.unchanged:
                for source, _, counts in newest_readings(self.catalogue, location.name):
                    yield self._result(source, counts, location)
            passed_over, failures = fetched.passed_over, 0
            for number, (feed, known, parsing) in enumerate(location.feeds):
                same = [other for *_, other in location.feeds[number + 1 :] if other is not None]
                try:
                    if known is not None:
                        result = self._result(feed.source, known, location)
                    else:
                        result = yield from self._read_feed(feed, parsing, location, [*same, *later])
                except FeedError as error:
                    failures += 1
                    yield Failure(source=feed.source, error=error)
                else:
                    yield replace(result, passed_over=passed_over)
                    passed_over = ()
            is_new = not (fetched.unchanged or failures)
            if fetched.validators is not None and is_new and location.grabbed_at is None:
                validators = fetched.validators
                store_validators(self.catalogue, location.name, validators.etag, validators.last_modified)

    def _read_feed(
        self, feed: Feed, parsing: Parsing | None, location: _Location, later: list[Parsing]
    ) -> Generator[Progress, None, FeedResult]:
        """Writes a feed in one transaction."""
        zone = self.settings.zone(feed.source)
        if parsing is None:
            stream = FeedStream(feed, self.settings.size_cap_bytes)
            batches = read_batches(stream, self.settings.batch_rows, zone)
        else:
            batches = parsing.batches(later)
        known_as = {"source": feed.source, "content_digest": feed.content_digest, "size": feed.bytes}
        when = {"read_at": self.now(), "grabbed_at": location.grabbed_at, "zone": zone}
        with reading(self.catalogue, **known_as, **when) as draft:
            yield from self._write(feed.source, batches, draft)
            return self._result(feed.source, draft.finish(), location, draft)

    def _result(
        self, source: str, counts: Counts, location: _Location, draft: FeedWriter | None = None
    ) -> FeedResult:
        """The result of a feed (unchanged without a draft); dated guides may end when they like.

        Raises:
            FeedError: A required source has anomalies: not stored, later readings are not compared with it.
        """
        anomalies: tuple[str, ...] = ()
        if draft is not None or not location.grabbed_at:
            today = None if location.grabbed_at else self.now().date()
            anomalies = reading_anomalies(self.catalogue, source, counts, draft, today)
        if anomalies and self.settings.is_required(source):
            raise FeedError(f"{source}: {'; '.join(anomalies)}")
        told = {"reasons": draft.reasons if draft else {}, "unchanged": draft is None, "anomalies": anomalies}
        return FeedResult(source=source, counts=counts, **told)

    def _write(self, source: str, batches: Iterator[ProgrammeBatch], draft: FeedWriter) -> Iterator[Progress]:
        for batch in batches:
            draft.add_programmes(batch.programmes, batch.details, batch.originals)
            draft.invalid_bytes += batch.invalid_bytes
            for kind in ("root", "channels", "rejects"):
                if (rows := getattr(batch, kind)).num_rows:
                    getattr(draft, f"add_{kind}")(rows)
            self.programmes += batch.programmes.num_rows
            if (now := self.clock()) - self.reported >= 1.0:
                self.reported = now
                yield self.progress(batch.share_read)
        reasons = reasons_text(draft.reasons)
        if draft.rejected and not draft.staged and not draft.channels:
            problem = f"nothing in it can be read ({reasons})"
            raise FeedError(f"{source}: {problem}; fetch it again, or leave it out")
        rejected = draft.rejected - sum(draft.reasons.get(reason, 0) for reason in _CUT)
        share, seen = self.settings.max_reject_share, draft.staged + rejected
        if rejected > share * seen:
            raise FeedError(
                f"{source}: {rejected:,} of {seen:,} programmes cannot be read ({reasons}), more than "
                f"{share:.0%}; nothing was stored. Mend the feed, or raise ingest.max_reject_share"
            )

    def progress(self, share: float = 0.0) -> Progress:
        """Steps are thousandths of a location, of which a share (0 to 1) is read."""
        feed = f"feed {min(self.done + 1, self.locations)} of {self.locations}"
        return Progress(
            step=round(1000 * (self.done + share)),
            total=1000 * self.locations,
            metrics={"programmes": float(self.programmes)},
            note=f"{feed}, {share:.0%} of its bytes, {self.programmes:,} programmes",
        )


def remove_leftovers(home: Path) -> None:
    """Removes what a killed run had downloaded or parsed."""
    shutil.rmtree(home / "parsed", ignore_errors=True)
    for file in (home / "downloads").glob("*"):
        file.unlink(missing_ok=True)


def adopt_former_names(catalogue: Catalogue, url: str, name: str) -> None:
    """Renames the sources under which a URL (with its secrets) was read to ``name``, unless that is known.

    Earlier versions kept most values of a query in the source, so that a signed URL was another source each
    night; their history continues under the new name.
    """
    bare, former = without_secrets(url), {}
    for source in list_sources(catalogue):
        address, mark, member = source.partition("!")
        if not member.lower().endswith(PLAIN):  # not one of several guides in a zip
            address, mark, member = source, "", ""
        if address == name:
            return
        if is_url(address) and without_secrets(address) == bare and differ_in_secrets_only(address, url):
            former[source] = name + mark + member
    if former:
        rename_sources(catalogue, former)
