"""Parses XMLTV files into batches of columns, in memory that does not depend on the size of the file.

Content such as categories is stored as written; later stages interpret it. Elements that cannot be read are
rejected and stored with line, excerpt and one of these reasons:

    no_channel   no channel attribute, or an empty channel attribute
    no_title     no title, or only empty titles
    bad_start    missing start, or not an XMLTV time (also if its offset is not in -12:00 to +14:00)
    malformed    markup from which no programme can be recovered
    oversized    more than 4 MiB without the end of a programme
    truncated    the file ends before the end tag of the root; one reject for the last element
    damaged      the file ends early because its compression is damaged

An implausible stop is stored, with the reason in ``stop_note`` (missing, unreadable, not_after_start,
over_a_day).
"""

from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from storage.catalogue.rows import CHANNELS, REJECTS, ROOT_ATTRIBUTES
from tasks.ingest.batches import BATCH_BYTES, ProgrammeBatch, renumber_rows_, to_batch
from tasks.ingest.encoding import Encoding
from tasks.ingest.sources.decompress import FeedStream
from tasks.ingest.sources.feeds import FeedError
from tasks.ingest.xmltv.fallback.elements import root_attributes
from tasks.ingest.xmltv.prolog import read_prolog
from tasks.ingest.xmltv.records import NO_PROGRAMMES, FrameRecords, read_records


def matches(head: bytes) -> bool:
    """Returns True for each feed, because XMLTV is the default; ``read`` rejects other feeds."""
    return True


def read(stream: FeedStream, batch_rows: int, zone: str) -> Iterator[ProgrammeBatch]:
    """Parses an XMLTV feed, and yields batches of about ``batch_rows`` programmes.

    ``zone`` is the time zone of the times without an offset; empty means UTC.
    """
    try:
        prolog, blocks = read_prolog(iter(stream), stream.feed.source)
    except FeedError as error:
        if stream.damage:
            raise stream.unreadable_error() from error
        raise
    encoding = Encoding(prolog.encoding, partial(FeedStream, stream.feed, stream.size_cap_bytes))
    attributes = root_attributes(prolog.attributes, encoding)
    frames: list[FrameRecords] = []
    row_count = size = 0
    for records in read_records(prolog, blocks, encoding, zone):
        frames.append(records)
        row_count += records.chunk.programmes.num_rows + len(records.channels) + len(records.rejects)
        size += len(records.frame.content)
        if row_count >= batch_rows or size >= BATCH_BYTES:
            yield _join_frames(frames, attributes, stream)
            frames, attributes, row_count, size = [], [], 0, 0
    yield _join_frames(frames, attributes, stream, is_last=True)


def _join_frames(
    frames: list[FrameRecords], attributes: list[tuple[str, str]], stream: FeedStream, is_last: bool = False
) -> ProgrammeBatch:
    """Joins the records of several frames (parts of the file) to one batch.

    ``attributes`` are the attributes of the root element; empty except in the first batch.
    """
    chunks = [records.chunk for records in frames] or [NO_PROGRAMMES]
    kinds = ("programmes", "details", "originals")
    batches = {kind: [getattr(chunk, kind) for chunk in chunks] for kind in kinds}
    renumber_rows_(batches)
    rejects = [
        (line, "damaged" if stream.damage and reason == "truncated" else reason, text)
        for records in frames
        for line, reason, text in records.rejects
    ]
    return ProgrammeBatch(
        **{kind: pa.concat_batches(batches[kind]) for kind in kinds},
        channels=to_batch([channel for records in frames for channel in records.channels], CHANNELS),
        rejects=to_batch(rejects, REJECTS),
        root=to_batch(attributes, ROOT_ATTRIBUTES),
        share_read=1.0 if is_last else stream.share_read,
        invalid_bytes=sum(records.invalid_bytes for records in frames),
    )
