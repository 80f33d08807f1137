"""Merges feeds into one guide, sorted by channel and time.

Each feed is read once (index.py) and channels are matched (matching.py). Then, channel by channel, the
programmes are merged (schedule.py) and copied from the feeds, so that only the index and the programmes of
one channel are in memory.
"""

import datetime
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from tasks.enrich.source import Source
from tasks.merge.decisions import read_decisions, write_table
from tasks.merge.elements import channel_element, repair_elements, rewrite
from tasks.merge.errors import MergeError
from tasks.merge.index import NO_STOP, CopyReader, FeedIndex, read_feed
from tasks.merge.matching import Matching, Target, match_all, match_playlist
from tasks.merge.playlist import read_playlist
from tasks.merge.schedule import MergedSchedule, Slot, merge_schedules
from tasks.merge.settings import MergeSettings

HEAD = b"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tv SYSTEM "xmltv.dtd">
<tv generator-info-name="GuideSpace">
"""
END = b"</tv>\n"
BATCH_BYTES = 1 << 20  # size of elements that are checked together
MICROSECONDS = 1_000_000


@dataclass
class Report:
    """Counts of the channels and programmes of the merged guide, and warnings."""

    feeds: int = 0
    channels: int = 0
    programmes: Counter[str] = field(default_factory=Counter)  # programmes by source
    filled: int = 0  # programmes from another feed than the preferred feed
    cut: int = 0  # programmes that were shortened because of overlaps
    doubled: int = 0  # programmes omitted because another one begins at the same time
    outside: int = 0  # programmes before or after the selected days
    unreadable: int = 0  # programmes that cannot be read
    unmatched: list[str] = field(default_factory=list)  # channels of the playlist without programmes
    proposals: int = 0  # rows of the table that wait for an answer
    table: str = ""  # path of channels.csv
    warnings: list[str] = field(default_factory=list)  # lines for the user

    def lines(self, written: str) -> Iterator[str]:
        """Yields the lines of the report. ``written`` is the path of the guide."""
        total = sum(self.programmes.values())
        yield f"{total:,} programmes of {self.channels:,} channels from {self.feeds} feeds"
        for source, count in self.programmes.items():
            yield f"  {count:,} from {source}"
        for count, text in (
            (self.filled, "fill gaps of the preferred feed"),
            (self.cut, "shortened, because they overlap with another"),
            (self.doubled, "omitted: another programme of the feed begins at the same time"),
            (self.outside, "omitted: outside the selected days (guide.days_back, guide.days_forward)"),
            (self.unreadable, "omitted: they cannot be read"),
        ):
            if count:
                yield f"  {count:,} {text}"
        if self.unmatched:
            names = ", ".join(self.unmatched[:10]) + " …" * (len(self.unmatched) > 10)
            yield f"{len(self.unmatched):,} channels of the playlist have no programmes: {names}"
        if self.proposals:
            yield (
                f"{self.proposals:,} similar names to confirm in {self.table}: write yes or no into the "
                "column use"
            )
        yield from self.warnings
        yield f"The guide: {written}"


@dataclass(frozen=True)
class Plan:
    """Merged guide before it is written: indexed feeds, matched channels and days."""

    feeds: Sequence[FeedIndex]
    targets: Sequence[Target]
    settings: MergeSettings
    window: tuple[int, int]  # begin and end of the days, in microseconds since 1970 UTC
    report: Report

    @property
    def categories(self) -> set[str]:
        """All categories of the feeds."""
        return set().union(*(feed.categories for feed in self.feeds))

    def pieces(self) -> Iterator[bytes]:
        """Yields the bytes of the merged guide, and updates the report."""
        yield HEAD
        for target in self.targets:
            yield b"  " + channel_element(target.members[0].channel, target.id, target.names) + b"\n"
        with ExitStack() as stack:
            readers = [stack.enter_context(closing(CopyReader(feed))) for feed in self.feeds]
            for target in self.targets:
                yield from self._programmes(target, readers)
        yield END

    def _programmes(self, target: Target, readers: Sequence[CopyReader]) -> Iterator[bytes]:
        """Yields the programme elements of a channel in batches."""
        rows = [self.feeds[member.feed].rows_of(member.channel.id) for member in target.members]
        places = [[*zip(table["offset"].tolist(), table["bytes"].tolist(), strict=True)] for table in rows]
        schedule = self._merge(target, rows)
        self.report.cut += schedule.cut
        self.report.doubled += schedule.doubled
        self.report.filled += schedule.filled
        batch_feed, batch, size = -1, [], 0
        previous_programme: tuple[int, bytes] | None = None
        for slot in [*schedule.slots, None]:
            if batch and (slot is None or slot.feed != batch_feed or size > BATCH_BYTES):
                feed = self.feeds[target.members[batch_feed].feed]
                texts = repair_elements(batch, feed.encoding)
                self.report.programmes[feed.source] += len(texts)
                self.report.unreadable += len(batch) - len(texts)
                yield b"".join(b"  %b\n" % text for text in texts)
                batch, size = [], 0
            if slot is None:
                break
            batch_feed = slot.feed
            element = readers[target.members[slot.feed].feed].read(*places[slot.feed][slot.row])
            element = rewrite(element, target.id, slot.start, slot.stop)
            if (slot.start, element) != previous_programme:  # feeds contain exact duplicates
                batch.append(element)
                size += len(element)
            previous_programme = slot.start, element

    def _merge(self, target: Target, rows: Sequence[np.ndarray]) -> MergedSchedule:
        """Merges the schedules of a channel from the index rows of each of its feeds."""
        begin, end = self.window
        schedules = []
        for number, (member, feed_rows) in enumerate(zip(target.members, rows, strict=True)):
            shift = member.shift
            last_stops = np.where(feed_rows["stop"] == NO_STOP, feed_rows["start"], feed_rows["stop"]) + shift
            is_inside = (last_stops > begin) & (feed_rows["start"] + shift < end)
            self.report.outside += int((~is_inside).sum())
            rows_inside = np.flatnonzero(is_inside)
            columns = (feed_rows[name][rows_inside].tolist() for name in ("start", "stop", "clumped"))
            schedules.append(
                [
                    Slot(start + shift, None if stop == NO_STOP else stop + shift, number, row, is_clumped)
                    for row, start, stop, is_clumped in zip(rows_inside.tolist(), *columns)
                ]
            )
        return merge_schedules(schedules, cut=self.settings.overlaps == "cut")


def merge(
    sources: Sequence[Source],
    settings: MergeSettings,
    work: Path,
    now: datetime.datetime,
    table: Path,
) -> Plan:
    """Reads feeds and matches their channels. ``Plan.pieces`` of the result yields the merged guide.

    Args:
        sources: Feeds in order of preference.
        settings: Settings of channels, days and overlaps.
        work: Folder for uncompressed copies of the feeds, which must exist until the guide is written.
        now: Current time, whose zone determines the days.
        table: Path of channels.csv, which is updated.

    Raises:
        FeedError: A feed is not XMLTV.
        MergeError: The playlist or the table cannot be read, or the guide would have no programme.
    """
    decisions = read_decisions(table)
    entries, warnings = read_playlist(Path(settings.playlist).expanduser()) if settings.playlist else ([], [])
    if not settings.shift:
        entries = [replace(entry, shift=0) for entry in entries]
    feeds = [read_feed(source, work / f"{number}.xml") for number, source in enumerate(sources)]
    matching = match_playlist(feeds, entries, decisions) if entries else match_all(feeds, decisions)
    write_table(table, matching.proposals)
    report = Report(feeds=len(feeds), table=str(table), warnings=warnings)
    report.unreadable = sum(feed.unreadable for feed in feeds)
    report.warnings += [f"{feed.source} is damaged ({feed.damage})" for feed in feeds if feed.damage]
    report.proposals = sum(not row.use for row in matching.proposals)
    window = day_bounds(now, settings.days_back, settings.days_forward)
    plan = Plan(feeds, _drop_empty_targets(feeds, matching, report), settings, window, report)
    _check_not_empty(plan)
    return plan


def _drop_empty_targets(feeds: Sequence[FeedIndex], matching: Matching, report: Report) -> list[Target]:
    """Returns the targets that have a channel in a feed, sorted by id, and reports all others."""
    report.unmatched = [target.id for target in matching.targets if not target.members]
    targets = [target for target in matching.targets if target.members]
    report.channels = len(targets)
    return sorted(targets, key=lambda target: target.id)


def _check_not_empty(plan: Plan) -> None:
    """Raises a MergeError if the merged guide would have no programme."""
    begin, end = plan.window
    rows = [
        (plan.feeds[member.feed].rows_of(member.channel.id), member.shift)
        for target in plan.targets
        for member in target.members
    ]
    if any(
        ((feed_rows["start"] + shift < end) & (feed_rows["start"] + shift >= begin)).any()
        for feed_rows, shift in rows
    ):
        return
    if not plan.targets:
        raise MergeError(
            f"no channel of {plan.settings.playlist or 'the feeds'} is in a feed; confirm similar names in "
            f"{plan.report.table}, or correct the tvg-id"
        )
    starts = [
        time
        for feed_rows, _ in rows
        if len(feed_rows)
        for time in (feed_rows["start"][0], feed_rows["start"][-1])
    ]
    if not starts:
        raise MergeError("the feeds have no programme of these channels; fetch newer ones")
    first, last = (_date(edge) for edge in (min(starts), max(starts)))
    raise MergeError(
        f"no programme begins from {_date(begin)} to {_date(end)}: those of the feeds begin from "
        f"{first} to {last}. Fetch newer feeds, or raise guide.days_back"
    )


def day_bounds(now: datetime.datetime, back: int, forward: int) -> tuple[int, int]:
    """Returns begin and end of the days from today - ``back`` to today + ``forward``, in microseconds UTC."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    edges = (
        midnight - datetime.timedelta(days=back),
        midnight + datetime.timedelta(days=forward + 1),
    )
    begin, end = (round(edge.timestamp() * MICROSECONDS) for edge in edges)
    return begin, end


def _date(microseconds: int) -> str:
    """Formats microseconds since 1970 UTC as date and time."""
    moment = datetime.datetime.fromtimestamp(int(microseconds) / MICROSECONDS, datetime.UTC)
    return f"{moment:%Y-%m-%d %H:%M} UTC"
