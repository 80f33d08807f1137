"""XMLTV to batches of columns, streaming: memory is bounded by a frame and a batch, not by the file.

What a programme says is kept as it says it; what it means (episodes, categories) is for later stages. Rejected, with
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
from dataclasses import dataclass

import lxml.etree as etree
import pyarrow as pa

from tasks.ingest.columns import ProgrammeColumns, to_batch
from tasks.ingest.elements import Elements
from tasks.ingest.feeds import FeedError
from tasks.ingest.frames import Frame, cut_frames
from tasks.ingest.prolog import read_prolog
from tasks.ingest.streams import FeedStream
from tasks.ingest.text import clean

EXCERPT = 200  # characters
PART = 2048  # programmes converted at a time: their strings fit a core's cache
TAGS = ("programme", "channel", "title", "sub-title", "category", "episode-num", "date")


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A part of a feed, as Arrow.

    Attributes:
        programmes: channel, start, stop, stop_note, title, title_language, sub_title, categories, episode_numbers, date.
        channels: channel, name.
        rejects: line, reason, excerpt.
        share_read: Share of the file read so far, 0 to 1.
    """

    programmes: pa.RecordBatch
    channels: pa.RecordBatch
    rejects: pa.RecordBatch
    share_read: float


def read_batches(stream: FeedStream, batch_rows: int) -> Iterator[Batch]:
    """Reads a feed; at least one batch, the last of which may be empty.

    Args:
        stream: The feed's bytes.
        batch_rows: Programmes a batch, about (a frame is never split).

    Raises:
        FeedError: It is empty, no XMLTV, too large, or nothing in it can be read.
    """
    try:
        prolog, blocks = read_prolog(iter(stream), stream.feed.source)
    except FeedError as error:
        if stream.damage:
            raise stream.nothing_readable() from error
        raise
    reader = _Reader(Elements(prolog.encoding))
    for frame in cut_frames(blocks, prolog.lines + 1) if not prolog.ended else ():
        if not frame.reason:
            reader.take(frame)
        else:
            reader.reject(frame.line, "damaged" if stream.damage and frame.reason == "truncated" else frame.reason, frame.content)
        if reader.rows >= batch_rows:
            yield reader.flush(stream.share_read)
    yield reader.flush(1.0)


class _Reader:
    """A batch being filled, part by part."""

    def __init__(self, elements: Elements) -> None:
        self.elements = elements
        self.rows = 0
        self.parts: list[pa.RecordBatch] = []
        self.channels: list[tuple[str, str]] = []
        self.rejects: list[tuple[int, str, str]] = []
        self.columns = ProgrammeColumns()
        self.frames: list[tuple[int, Frame]] = []  # of the part being filled, each with its first row

    def flush(self, share_read: float) -> Batch:
        """What was taken since the last flush."""
        self._settle()
        batch = Batch(
            programmes=pa.concat_batches(self.parts),
            channels=to_batch(self.channels, {"channel": pa.string(), "name": pa.string()}),
            rejects=to_batch(self.rejects, {"line": pa.int64(), "reason": pa.string(), "excerpt": pa.string()}),
            share_read=share_read,
        )
        self.rows, self.parts, self.channels, self.rejects = 0, [], [], []
        return batch

    def take(self, frame: Frame) -> None:
        """Adds what a frame says."""
        self.frames.append((len(self.columns), frame))
        for root, line, lost in self.elements.roots(frame):
            if root is None:
                self.reject(line, "malformed", lost)
            else:
                self._read(root)
        if len(self.columns) >= PART:
            self._settle()

    def reject(self, line: int, reason: str, content: bytes) -> None:
        """Notes what cannot be kept, with the beginning of it on one line."""
        self.rejects.append((line, reason, " ".join(content[: 4 * EXCERPT].decode("utf-8", "replace").split())[:EXCERPT]))

    def _read(self, root: etree._Element) -> None:
        """Adds the channels and programmes below a root as they are written; the hot loop of the stage."""
        columns = self.columns
        channels, starts, stops, titles, languages = columns.channel, columns.start, columns.stop, columns.title, columns.title_language
        sub_titles, dates, categories, episode_numbers = columns.sub_title, columns.date, columns.categories, columns.episode_numbers
        category_offsets, episode_offsets = columns.category_offsets, columns.episode_offsets
        for element in root.iter(*TAGS):
            tag = element.tag
            if tag == "category":
                categories.append(element.text)
            elif tag == "title":
                if titles and titles[-1] is None:
                    text = "".join(element.itertext()) if len(element) else element.text
                    if text and not text.isspace():
                        titles[-1] = text
                        languages[-1] = element.get("lang")
            elif tag == "programme":
                channels.append(element.get("channel"))
                starts.append(element.get("start"))
                stops.append(element.get("stop"))
                titles.append(None)
                languages.append(None)
                sub_titles.append(None)
                dates.append(None)
                category_offsets.append(len(categories))
                episode_offsets.append(len(episode_numbers))
            elif tag == "episode-num":
                episode_numbers.append(element.text)
            elif tag == "channel":
                self._read_channel(element)
            elif titles:
                column = sub_titles if tag == "sub-title" else dates
                column[-1] = column[-1] or element.text

    def _read_channel(self, element: etree._Element) -> None:
        channel = clean(element.get("id", ""))
        names = (clean(name.text or "") for name in element.iterchildren("display-name"))
        if channel:
            self.channels.append((channel, next(filter(None, names), channel)))

    def _settle(self) -> None:
        """Converts the part, and looks up in their frames the programmes that cannot be kept."""
        part, reasons = self.columns.settle()
        self.parts.append(part)
        self.rows += part.num_rows
        row = 0
        for first, frame in self.frames if reasons else ():
            row = first
            for root, line, _ in self.elements.roots(frame):
                for element in root.iter("programme") if root is not None else ():
                    if row in reasons:
                        self.reject(line + (element.sourceline or 1) - 1, reasons[row], etree.tostring(element, encoding="utf-8", with_tail=False))
                    row += 1
        self.columns, self.frames = ProgrammeColumns(), []
