"""XMLTV to batches of columns, streaming: memory is bounded by a frame and a batch, not by the file.

What a programme says is kept as written; its meaning (episodes, categories) is for views and later stages.
Rejected, with line and excerpt, is what has no place in a schedule:

    no_channel   no channel attribute, or an empty one
    no_title     no title with text
    bad_start    a start that is missing or no XMLTV time (an offset beyond -12:00 to +14:00 among them)
    malformed    markup from which no programme can be recovered
    oversized    more than 4 MiB without the end of a programme
    truncated    the file ends before its root does: one, for the element that the cut fell into
    damaged      the same, where compression was damaged

A stop is kept as given; ``stop_note`` says what is odd about it (missing, unreadable, not_after_start,
over_a_day).
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import lxml.etree as etree
import pyarrow as pa

from storage.catalogue.rows import CHANNELS, REJECTS, ROOT
from tasks.ingest.batches import BATCH_BYTES, ProgrammeBatch, excerpt, number_from_first_, to_batch
from tasks.ingest.columns import ColumnChunk, RawColumns, validate_and_type
from tasks.ingest.encoding import Encoding
from tasks.ingest.sources.decompress import FeedStream
from tasks.ingest.sources.feeds import FeedError
from tasks.ingest.xmltv.fallback.elements import root_attributes, roots
from tasks.ingest.xmltv.fallback.programmes import read_tree
from tasks.ingest.xmltv.frames import Frame, cut_frames, split
from tasks.ingest.xmltv.prolog import read_prolog
from tasks.ingest.xmltv.scan import scan
from tasks.ingest.xmltv.text import repaired
from tasks.ingest.xmltv.times import parse_times

PIECE = 64 << 10  # bytes parsed at a time: 64 KiB take two thirds of the time of 1 MiB (cache)


def matches(head: bytes) -> bool:
    """Always: what is no XMLTV is an error of this reader."""
    return True


def read(stream: FeedStream, batch_rows: int, zone: str) -> Iterator[ProgrammeBatch]:
    """See ``Reader.read``; a frame is never split over batches."""
    try:
        prolog, blocks = read_prolog(iter(stream), stream.feed.source)
    except FeedError as error:
        if stream.damage:
            raise stream.nothing_readable() from error
        raise
    batch = _Batch(zone)
    encoding = Encoding(prolog.encoding, partial(FeedStream, stream.feed, stream.size_cap_bytes))
    batch.root = root_attributes(prolog.attributes, encoding)
    for frame in cut_frames(blocks, prolog.lines + 1, prolog.ended):
        if frame.reason:
            reason = "damaged" if stream.damage and frame.reason == "truncated" else frame.reason
            batch.rejects.append((frame.line, reason, excerpt(frame.content)))
        else:
            content, invalid_bytes = repaired(frame.content, encoding)
            batch.invalid_bytes += invalid_bytes
            batch.add(replace(frame, content=content))
        if batch.rows + len(batch.rejects) + len(batch.channels) >= batch_rows or batch.bytes >= BATCH_BYTES:
            yield batch.finish(stream.share_read)
            batch = _Batch(zone)
    yield batch.finish(1.0)


class _Batch:
    def __init__(self, zone: str) -> None:
        self.zone = zone
        self.rows = self.bytes = self.invalid_bytes = 0
        self.chunks: list[ColumnChunk] = []
        self.channels: list[tuple[Any, ...]] = []
        self.rejects: list[tuple[int, str, str]] = []
        self.root: list[tuple[str, str]] = []

    def finish(self, share_read: float) -> ProgrammeBatch:
        if not self.chunks:
            self._add_chunk(RawColumns.of([]))
        kinds = ("programmes", "details", "originals")
        batches = {kind: [getattr(chunk, kind) for chunk in self.chunks] for kind in kinds}
        number_from_first_(batches)
        return ProgrammeBatch(
            **{kind: pa.concat_batches(batches[kind]) for kind in kinds},
            channels=to_batch(self.channels, CHANNELS),
            rejects=to_batch(self.rejects, REJECTS),
            root=to_batch(self.root, ROOT),
            share_read=share_read,
            invalid_bytes=self.invalid_bytes,
        )

    def add(self, frame: Frame) -> None:
        """Adds a repaired frame, and rejects the programmes of it that have no place in a schedule."""
        raw = scan(frame.content)
        if raw is None:
            rows: list[dict[str, Any]] = []
            for piece in split(frame, PIECE):
                for root, line, lost in roots(piece):
                    if root is None:
                        self.rejects.append((line, "malformed", excerpt(lost)))
                    else:
                        read_tree(root, rows, self.channels, self.zone)
            raw = RawColumns.of(rows)
        self.bytes += len(frame.content)
        if reasons := self._add_chunk(raw):
            trees = (tree for piece in split(frame, PIECE) for tree in roots(piece))
            found = ((root, line) for root, line, _ in trees if root is not None)
            programmes = ((each, line) for root, line in found for each in root.iter("programme"))
            for row, (element, line) in enumerate(programmes):
                if row in reasons:
                    content = etree.tostring(element, encoding="utf-8", with_tail=False)
                    number = line + (element.sourceline or 1) - 1
                    self.rejects.append((number, reasons[row], excerpt(content)))

    def _add_chunk(self, raw: RawColumns) -> dict[int, str]:
        chunk = validate_and_type(raw, partial(parse_times, zone=self.zone))
        self.chunks.append(chunk)
        self.rows += chunk.programmes.num_rows
        return chunk.reasons
