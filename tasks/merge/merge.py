"""Merges feeds into one guide, sorted by channel and time.

Each feed is read once (index.py), and channels are matched (matching.py). Then the programmes of one channel
after the other are merged (schedule.py) and copied from the feeds, so that only the index and the programmes
of one channel are in memory.
"""

import datetime
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

import numpy as np

from tasks.enrich.source import Source
from tasks.merge.decisions import read_decisions, write_table
from tasks.merge.elements import make_channel_element, repair_elements, rewrite_programme
from tasks.merge.errors import MergeError
from tasks.merge.index import NO_STOP, FeedIndex, read_feed
from tasks.merge.matching import Target, match_all, match_playlist
from tasks.merge.playlist import read_playlist
from tasks.merge.schedule import MergedSchedule, Slot, merge_schedules
from tasks.merge.settings import MergeSettings

GUIDE_HEAD = b"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tv SYSTEM "xmltv.dtd">
<tv generator-info-name="GuideSpace">
"""
GUIDE_END = b"</tv>\n"
BATCH_BYTES = 1 << 20  # approximate size of the elements that are checked together
MICROSECONDS_PER_SECOND = 1_000_000


@dataclass
class Report:
    """Counts of the channels and programmes of the merged guide, and warnings."""

    feed_count: int = 0
    channel_count: int = 0
    programmes: Counter[str] = field(default_factory=Counter)  # number of programmes by source
    filled_count: int = 0  # programmes from another feed than the preferred feed
    cut_count: int = 0  # programmes that were shortened because of overlaps
    duplicate_count: int = 0  # programmes omitted because another one begins at the same time
    outside_count: int = 0  # programmes before or after the selected days
    unreadable_count: int = 0  # programmes that cannot be read
    unmatched_channels: list[str] = field(default_factory=list)  # channels of the playlist without programmes
    open_proposals: int = 0  # number of rows of channels.csv without an answer
    table: str = ""  # path of channels.csv
    warnings: list[str] = field(default_factory=list)  # lines for the user

    def lines(self, guide_path: str) -> Iterator[str]:
        """Yields the lines of the report. ``guide_path`` is the path of the merged guide."""
        total = sum(self.programmes.values())
        yield f"{total:,} programmes of {self.channel_count:,} channels from {self.feed_count} feeds"
        for source, count in self.programmes.items():
            yield f"  {count:,} from {source}"
        for count, text in (
            (self.filled_count, "fill gaps of the preferred feed"),
            (self.cut_count, "shortened, because they overlap with another"),
            (self.duplicate_count, "omitted: another programme of the feed begins at the same time"),
            (self.outside_count, "omitted: outside the selected days (guide.days_back, guide.days_forward)"),
            (self.unreadable_count, "omitted: they cannot be read"),
        ):
            if count:
                yield f"  {count:,} {text}"
        if self.unmatched_channels:
            names = ", ".join(self.unmatched_channels[:10]) + " …" * (len(self.unmatched_channels) > 10)
            yield f"{len(self.unmatched_channels):,} channels of the playlist have no programmes: {names}"
        if self.open_proposals:
            yield (
                f"{self.open_proposals:,} similar names to confirm in {self.table}: write yes or no into the "
                "column use"
            )
        yield from self.warnings
        yield f"The guide: {guide_path}"


@dataclass
class GuideMerger:
    """Merges the programmes of indexed feeds. Counts them in ``report`` while ``pieces`` yields the guide."""

    feeds: Sequence[FeedIndex]
    targets: Sequence[Target]
    settings: MergeSettings
    window: tuple[int, int]  # begin and end of the selected days, in microseconds since 1970 UTC
    report: Report

    @property
    def categories(self) -> set[str]:
        """All categories of the feeds."""
        return set().union(*(feed.categories for feed in self.feeds))

    def pieces(self) -> Iterator[bytes]:
        """Yields the bytes of the merged guide. ``report`` is complete after the last piece."""
        yield GUIDE_HEAD
        for target in self.targets:
            yield b"  " + make_channel_element(target.members[0].channel, target.id, target.names) + b"\n"
        with ExitStack() as stack:
            copies = [stack.enter_context(open(feed.copy, "rb")) for feed in self.feeds]
            for target in self.targets:
                yield from self._programmes(target, copies)
        yield GUIDE_END

    def _programmes(self, target: Target, copies: Sequence[IO[bytes]]) -> Iterator[bytes]:
        """Yields the programme elements of a channel in batches. ``copies`` are the copies of the feeds."""
        rows = [self.feeds[member.feed].rows_of(member.channel.id) for member in target.members]
        spans = [  # size and offset of each programme in the copy of each feed
            [*zip(feed_rows["bytes"].tolist(), feed_rows["offset"].tolist(), strict=True)]
            for feed_rows in rows
        ]
        schedule = self._merge_schedules(target, rows)
        self.report.cut_count += schedule.cut_count
        self.report.duplicate_count += schedule.duplicate_count
        self.report.filled_count += schedule.filled_count
        batch_feed, batch, size = -1, [], 0
        previous_programme: tuple[int, bytes] | None = None
        for slot in [*schedule.slots, None]:
            if batch and (slot is None or slot.feed != batch_feed or size > BATCH_BYTES):
                feed = self.feeds[target.members[batch_feed].feed]
                elements = repair_elements(batch, feed.encoding)
                self.report.programmes[feed.source] += len(elements)
                self.report.unreadable_count += len(batch) - len(elements)
                yield b"".join(b"  %b\n" % element for element in elements)
                batch, size = [], 0
            if slot is None:
                break
            batch_feed = slot.feed
            copy = copies[target.members[slot.feed].feed]
            byte_count, offset = spans[slot.feed][slot.row]
            element = os.pread(copy.fileno(), byte_count, offset)
            element = rewrite_programme(element, target.id, slot.start, slot.stop)
            if (slot.start, element) != previous_programme:  # feeds contain exact duplicates
                batch.append(element)
                size += len(element)
            previous_programme = slot.start, element

    def _merge_schedules(self, target: Target, rows: Sequence[np.ndarray]) -> MergedSchedule:
        """Merges the schedules of a channel. ``rows`` are the index rows of each feed of the channel."""
        schedules = []
        for number, (member, feed_rows) in enumerate(zip(target.members, rows, strict=True)):
            shift = member.shift
            is_inside = _overlaps(feed_rows, shift, self.window)
            self.report.outside_count += int((~is_inside).sum())
            rows_inside = np.flatnonzero(is_inside)
            columns = (feed_rows[name][rows_inside].tolist() for name in ("start", "stop", "clumped"))
            schedules.append(
                [
                    Slot(start + shift, None if stop == NO_STOP else stop + shift, number, row, is_clumped)
                    for row, start, stop, is_clumped in zip(rows_inside.tolist(), *columns)
                ]
            )
        return merge_schedules(schedules, cut=self.settings.overlaps == "cut")


def open_merger(
    sources: Sequence[Source],
    settings: MergeSettings,
    work: Path,
    now: datetime.datetime,
    table: Path,
) -> GuideMerger:
    """Reads feeds and matches their channels. ``GuideMerger.pieces`` then yields the merged guide.

    Args:
        sources: Feeds in order of preference.
        settings: Settings of channels, days and overlaps.
        work: Folder for uncompressed copies of the feeds. It must exist until the guide is written.
        now: Current time, whose zone determines the days.
        table: Path of channels.csv, which is updated.

    Raises:
        FeedError: A feed is not XMLTV.
        MergeError: The playlist or the table cannot be read, or the guide would have no programme.
    """
    decisions = read_decisions(table)
    channels, warnings = (
        read_playlist(Path(settings.playlist).expanduser()) if settings.playlist else ([], [])
    )
    if not settings.shift:
        channels = [replace(channel, shift=0) for channel in channels]
    feeds = [read_feed(source, work / f"{number}.xml") for number, source in enumerate(sources)]
    matching = match_playlist(feeds, channels, decisions) if channels else match_all(feeds, decisions)
    write_table(table, matching.proposals)
    targets = sorted((target for target in matching.targets if target.members), key=lambda target: target.id)
    report = Report(
        feed_count=len(feeds),
        channel_count=len(targets),
        unreadable_count=sum(feed.unreadable_count for feed in feeds),
        unmatched_channels=[target.id for target in matching.targets if not target.members],
        open_proposals=sum(not row.use for row in matching.proposals),
        table=str(table),
        warnings=warnings + [f"{feed.source} is damaged ({feed.damage})" for feed in feeds if feed.damage],
    )
    window = day_bounds(now, settings.days_back, settings.days_forward)
    merger = GuideMerger(feeds, targets, settings, window, report)
    _check_not_empty(merger)
    return merger


def _overlaps(feed_rows: np.ndarray, shift: int, window: tuple[int, int]) -> np.ndarray:
    """Returns which programmes begin in the window or are on air at its begin, bool, one per index row."""
    starts, stops = feed_rows["start"] + shift, feed_rows["stop"] + shift
    is_on_air = (feed_rows["stop"] != NO_STOP) & (stops > window[0])
    return ((starts >= window[0]) | is_on_air) & (starts < window[1])


def _check_not_empty(merger: GuideMerger) -> None:
    """Raises a MergeError if the merged guide would have no programme."""
    rows = [
        (merger.feeds[member.feed].rows_of(member.channel.id), member.shift)
        for target in merger.targets
        for member in target.members
    ]
    if any(_overlaps(feed_rows, shift, merger.window).any() for feed_rows, shift in rows):
        return
    if not merger.targets:
        raise MergeError(
            f"no channel of {merger.settings.playlist or 'the feeds'} is in a feed; confirm similar names in "
            f"{merger.report.table}, or correct the tvg-id"
        )
    starts = np.concatenate([feed_rows["start"] for feed_rows, _ in rows])
    if not len(starts):
        raise MergeError("the feeds have no programme of the selected channels; fetch newer feeds")
    (begin, end), first, last = merger.window, _format_time(starts.min()), _format_time(starts.max())
    raise MergeError(
        f"no programme begins from {_format_time(begin)} to {_format_time(end)}: the programmes of the feeds "
        f"begin from {first} to {last}. Fetch newer feeds, or raise guide.days_back"
    )


def day_bounds(now: datetime.datetime, back: int, forward: int) -> tuple[int, int]:
    """Returns begin and end of the period from ``back`` days before today to ``forward`` days after today.

    Both are in microseconds since 1970 UTC. Days are in the time zone of ``now``.
    """
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    begin = midnight - datetime.timedelta(days=back)
    end = midnight + datetime.timedelta(days=forward + 1)
    return _to_microseconds(begin), _to_microseconds(end)


def _to_microseconds(moment: datetime.datetime) -> int:
    """Converts a time with a zone to microseconds since 1970 UTC."""
    return round(moment.timestamp() * MICROSECONDS_PER_SECOND)


def _format_time(microseconds: int) -> str:
    """Formats microseconds since 1970 UTC as date and time in UTC."""
    moment = datetime.datetime.fromtimestamp(int(microseconds) / MICROSECONDS_PER_SECOND, datetime.UTC)
    return f"{moment:%Y-%m-%d %H:%M} UTC"
