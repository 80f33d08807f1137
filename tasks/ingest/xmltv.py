"""XMLTV to batches of columns, streaming: memory is bounded by a frame and a batch, not by the file.

What a programme says is kept as it says it; what it means (episodes, categories) is for views and later stages. Rejected, with
line and excerpt, is what has no place in a schedule:

    no_channel   no channel attribute, or an empty one
    no_title     no title with text
    bad_start    a start that is missing or no XMLTV time (an offset beyond -12:00 to +14:00 among them)
    malformed    markup from which no programme can be recovered
    oversized    more than 4 MiB without the end of a programme
    truncated    the file ends before its root does: one, for the element that the cut fell into
    damaged      the same, where compression was damaged

A stop is kept as given; ``stop_note`` says what is odd about it (missing, unreadable, not_after_start, over_a_day).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import lxml.etree as etree
import pyarrow as pa

from storage.catalogue.rows import CHANNELS, REJECTS, ROOT
from tasks.ingest.columns import Part, ProgrammeColumns, settle, to_batch
from tasks.ingest.elements import Elements
from tasks.ingest.extra import attributes_of, channel_extra, dumps
from tasks.ingest.feeds import FeedError
from tasks.ingest.frames import Frame, cut_frames, split
from tasks.ingest.prolog import read_prolog
from tasks.ingest.said import Said, concat
from tasks.ingest.scan import HELD, scan
from tasks.ingest.streams import FeedStream
from tasks.ingest.text import clean

EXCERPT = 200  # characters
PART = 2048  # programmes converted at a time: their strings fit a core's cache
PART_BYTES = 4 << 20  # of them at most, about: most guides' are 1 MB
BATCH_BYTES = 16 << 20  # of a batch at most, about
_HELD = frozenset(HELD)
PIECE = 64 << 10  # bytes parsed at a time: 64 KiB take two thirds of the time of 1 MiB (cache)
_OTHERS = frozenset(
    "desc keyword country language orig-language new premiere live previously-shown "  # noqa: SIM905
    "star-rating rating credits length icon url video audio subtitles last-chance review image".split()
)


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A part of a feed, as Arrow; the columns are those of storage/catalogue/rows.py."""

    programmes: pa.RecordBatch | pa.Table
    details: pa.RecordBatch | pa.Table
    originals: pa.RecordBatch | pa.Table
    channels: pa.RecordBatch | pa.Table
    rejects: pa.RecordBatch | pa.Table
    root: pa.RecordBatch | pa.Table  # with the first batch
    share_read: float  # of the file so far, 0 to 1


def read_batches(stream: FeedStream, batch_rows: int, zone: str = "") -> Iterator[Batch]:
    """Reads a feed; at least one batch, the last of which may be empty.

    Args:
        stream: The feed's bytes.
        batch_rows: Programmes a batch, about (a frame is never split); fewer where they are very long, or many are rejected.
        zone: Of times that name none; empty is UTC.

    Raises:
        FeedError: It is empty, no XMLTV, too large, or nothing in it can be read.
    """
    try:
        prolog, blocks = read_prolog(iter(stream), stream.feed.source)
    except FeedError as error:
        if stream.damage:
            raise stream.nothing_readable() from error
        raise
    elements = Elements(prolog.encoding)
    reader = _Reader(elements, zone)
    reader.root = elements.attributes(prolog.attributes)
    for frame in cut_frames(blocks, prolog.lines + 1, prolog.ended):
        if not frame.reason:
            reader.take(frame)
        else:
            reader.reject(frame.line, "damaged" if stream.damage and frame.reason == "truncated" else frame.reason, frame.content)
        if reader.is_full(batch_rows):
            yield reader.flush(stream.share_read)
    yield reader.flush(1.0)


class _Reader:
    """A batch being filled, part by part."""

    def __init__(self, elements: Elements, zone: str) -> None:
        self.elements = elements
        self.zone = zone
        self.columns = ProgrammeColumns(zone)  # of the part being filled, where its frames are parsed
        self.scanned: list[Said] = []  # and where they are scanned
        self.frames: list[tuple[int, Frame]] = []  # of the part being filled, each with its first row
        self._begin()

    def _begin(self) -> None:
        self.rows = self.bytes = self.part_bytes = 0
        self.parts: list[Part] = []
        self.firsts: list[int] = []  # row of the batch at which each part begins
        self.channels: list[tuple[str, str, list[str], str | None, str | None, list[str], str | None]] = []
        self.rejects: list[tuple[int, str, str]] = []
        self.root: list[tuple[str, str]] = []

    def is_full(self, batch_rows: int) -> bool:
        """Whether it is time to flush: whatever a feed is made of, little of it is held."""
        return self.rows + len(self.rejects) + len(self.channels) >= batch_rows or self.bytes >= BATCH_BYTES

    def flush(self, share_read: float) -> Batch:
        """What was taken since the last flush."""
        self._settle()
        batch = Batch(
            programmes=pa.concat_batches([part.programmes for part in self.parts]),
            details=_with_rows([part.details for part in self.parts], self.firsts),
            originals=_with_rows([part.originals for part in self.parts], self.firsts),
            channels=to_batch(self.channels, CHANNELS),
            rejects=to_batch(self.rejects, REJECTS),
            root=to_batch(self.root, ROOT),
            share_read=share_read,
        )
        self._begin()
        return batch

    def take(self, frame: Frame) -> None:
        """Adds what a frame says."""
        frame = replace(frame, content=self.elements.repaired(frame.content))
        said = scan(frame.content)
        if said is not None:
            if len(self.columns):
                self._settle()
            self.frames.append((sum(map(len, self.scanned)), frame))
            self.scanned.append(said)
        else:
            if self.scanned:
                self._settle()
            for piece in split(frame, PIECE):
                self._parse(piece)
        self.part_bytes += len(frame.content)
        if len(self.columns) + sum(map(len, self.scanned)) >= PART or self.part_bytes >= PART_BYTES:
            self._settle()

    def _parse(self, frame: Frame) -> None:
        self.frames.append((len(self.columns), frame))
        for root, line, lost in self.elements.roots(frame):
            if root is None:
                self.reject(line, "malformed", lost)
            else:
                self._read(root)

    def reject(self, line: int, reason: str, content: bytes) -> None:
        """Notes what cannot be kept, with the beginning of it on one line."""
        self.rejects.append((line, reason, " ".join(content[: 4 * EXCERPT].decode("utf-8", "replace").split())[:EXCERPT]))

    def _read(self, root: etree._Element) -> None:
        """Adds the channels and programmes below a root as they are written."""
        if next(root.iter("programme"), None) is None:  # what else stands there is no part of the programme before it
            for channel in root.iter("channel"):
                self._read_channel(channel)
            return
        columns = self.columns
        channels, starts, stops, titles, languages = columns.channel, columns.start, columns.stop, columns.title, columns.title_language
        sub_titles, sub_title_languages, dates = columns.sub_title, columns.sub_title_language, columns.date
        categories, category_languages = columns.categories, columns.category_languages
        numbers, systems, attributes = columns.episode_numbers, columns.episode_systems, columns.attributes
        category_offsets, episode_offsets = columns.category_offsets, columns.episode_offsets
        for element in root.iter():
            tag = element.tag
            if tag == "category":
                categories.append(element.text)
                category_languages.append(element.get("lang"))
            elif tag == "title":
                if titles and titles[-1] is None:
                    text = "".join(element.itertext()) if len(element) else element.text
                    if text and not text.isspace():
                        titles[-1] = text
                        languages[-1] = element.get("lang")
                elif titles:
                    columns.details.take(len(titles) - 1, element)
            elif tag == "programme":
                channels.append(element.get("channel"))
                starts.append(element.get("start"))
                stops.append(element.get("stop"))
                titles.append(None)
                languages.append(None)
                sub_titles.append(None)
                sub_title_languages.append(None)
                further = () if _HELD.issuperset(element.keys()) else attributes_of(element, _HELD)
                attributes.append(dumps(further) if further else None)
                dates.append(None)
                category_offsets.append(len(categories))
                episode_offsets.append(len(numbers))
            elif tag == "episode-num":
                numbers.append(element.text)
                systems.append(element.get("system"))
            elif tag == "sub-title":
                if titles and not sub_titles[-1]:
                    sub_titles[-1] = element.text
                    sub_title_languages[-1] = element.get("lang")
                elif titles:
                    columns.details.take(len(titles) - 1, element)
            elif tag == "date":
                if titles:
                    dates[-1] = dates[-1] or element.text
            elif tag == "channel":
                self._read_channel(element)
            elif titles and tag in _OTHERS:
                columns.details.take(len(titles) - 1, element)

    def _read_channel(self, element: etree._Element) -> None:
        channel = element.get("id", "")  # as it is: programmes name it so
        if channel.strip():
            said = {tag: [text for child in element.iterchildren(tag) if (text := clean(child.text or ""))] for tag in ("display-name", "lcn", "url")}
            icon = next((clean(child.get("src", "")) for child in element.iterchildren("icon")), None)
            names = said["display-name"] or [channel]
            lcn, extra = next(iter(said["lcn"]), None), channel_extra(element)
            self.channels.append((channel, names[0], names, icon or None, lcn, said["url"], extra))

    def _settle(self) -> None:
        """Converts the part, and looks up in their frames the programmes that cannot be kept."""
        part = settle(concat(self.scanned), self.zone) if self.scanned else settle(self.columns.said(), self.zone, self.columns.details)
        self.firsts.append(self.rows)
        self.parts.append(part)
        self.rows += part.programmes.num_rows
        self.bytes, self.part_bytes = self.bytes + self.part_bytes, 0
        row = 0
        for first, frame in self.frames if part.reasons else ():
            row = first
            for root, line, _ in self.elements.roots(frame):
                for element in root.iter("programme") if root is not None else ():
                    if row in part.reasons:
                        self.reject(line + (element.sourceline or 1) - 1, part.reasons[row], etree.tostring(element, encoding="utf-8", with_tail=False))
                    row += 1
        self.columns, self.scanned, self.frames = ProgrammeColumns(self.zone), [], []


def _with_rows(batches: list[pa.RecordBatch], firsts: list[int]) -> pa.RecordBatch:
    """The batches as one, their rows counted from the first of all."""
    filled = [batch.set_column(0, "row", pa.array(batch.column("row").to_numpy() + first)) for batch, first in zip(batches, firsts) if batch.num_rows]
    return pa.concat_batches(filled) if filled else batches[0]
