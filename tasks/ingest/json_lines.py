"""Parses guides in JSON lines: one object per programme, with fields of RawColumns as keys (docs/feeds.md).

Lines without channel, title or valid start (ISO 8601) are rejected. Other reasons for rejecting a line are
``malformed`` (not a JSON object), ``oversized`` (more than 4 MiB), and ``truncated`` or ``damaged`` (an
incomplete last line).
"""

import datetime
import json
from codecs import BOM_UTF8
from collections.abc import Iterator
from functools import partial
from io import BytesIO
from typing import Any

from storage.catalogue.rows import CHANNELS, REJECTS, ROOT_ATTRIBUTES
from tasks.ingest.batches import BATCH_BYTES, ProgrammeBatch, excerpt, to_batch
from tasks.ingest.columns import RawColumns, clean_columns
from tasks.ingest.encoding import Encoding
from tasks.ingest.sources.decompress import FeedStream
from tasks.ingest.sources.feeds import FeedError
from tasks.ingest.xmltv.times import parse_time

MAX_LINE_BYTES = 4 << 20  # longer lines are rejected
# Key of a list -> column of RawColumns with an XMLTV attribute of each list element. JSON lines lack this
# attribute, so that it is null.
_ATTRIBUTES_OF_LISTS = {"categories": "category_languages", "episode_numbers": "episode_systems"}
_XMLTV_COLUMNS = {"attributes", "details", "elements", *_ATTRIBUTES_OF_LISTS.values()}
_JSON_COLUMNS = RawColumns.__dataclass_fields__.keys() - _XMLTV_COLUMNS


def matches(head: bytes) -> bool:
    """Returns whether a feed that begins with ``head`` may be JSON lines: the first character is a brace."""
    return head.removeprefix(BOM_UTF8).lstrip().startswith(b"{")


def read(stream: FeedStream, batch_rows: int, zone: str) -> Iterator[ProgrammeBatch]:
    """Parses a feed in JSON lines, and yields batches of about ``batch_rows`` programmes.

    ``zone`` is the time zone of the times without an offset; empty means UTC.
    """
    if b'"channel"' not in (head := stream.head()):
        start = head.strip()[:40].decode("utf-8", "replace")
        raise FeedError(
            f"{stream.feed.source}: not XML and not JSON lines with a channel; it starts with {start!r}, "
            "expected XMLTV (<tv> … </tv>) or one JSON object per programme"
        )

    def make_batch(share_read: float) -> ProgrammeBatch:
        chunk = clean_columns(RawColumns.from_rows(rows), partial(_parse_iso_time, zone=zone))
        invalid_rows = [
            (lines[row][0], reason, excerpt(lines[row][1])) for row, reason in chunk.reasons.items()
        ]
        return ProgrammeBatch(
            **{kind: getattr(chunk, kind) for kind in ("programmes", "details", "originals")},
            channels=to_batch((), CHANNELS),
            rejects=to_batch(sorted([*rejects, *invalid_rows]), REJECTS),
            root=to_batch((), ROOT_ATTRIBUTES),
            share_read=share_read,
            invalid_bytes=invalid_bytes,
        )

    encoding = Encoding("utf-8", partial(FeedStream, stream.feed, stream.size_cap_bytes))
    rows, lines, rejects, size, invalid_bytes = [], [], [], 0, 0
    for line_number, line in enumerate(_read_lines(stream), 1):
        if line.removeprefix(BOM_UTF8).strip():
            size += len(line)
            line, invalid_count = encoding.decode(line)
            invalid_bytes += invalid_count
            try:
                rows.append(_parse_line(line))
                lines.append((line_number, line))
            except (ValueError, RecursionError):
                reason = "malformed" if line.endswith(b"\n") else "damaged" if stream.damage else "truncated"
                reason = "oversized" if len(line) > MAX_LINE_BYTES else reason
                rejects.append((line_number, reason, excerpt(line)))
        if len(rows) + len(rejects) >= batch_rows or size >= BATCH_BYTES:
            yield make_batch(stream.share_read)
            rows, lines, rejects, size, invalid_bytes = [], [], [], 0, 0
    yield make_batch(1.0)


def _read_lines(stream: FeedStream) -> Iterator[bytes]:
    """Yields the lines of a feed, including line feeds. Truncates lines that exceed MAX_LINE_BYTES."""
    line = b""
    for block in stream:
        for piece in BytesIO(block):  # unlike bytes.splitlines, does not end lines at carriage returns
            line = line[: MAX_LINE_BYTES + 1] + piece
            if piece.endswith(b"\n"):
                yield line
                line = b""
    yield line


def _parse_line(line: bytes) -> dict[str, Any]:
    """Converts a line to a row for RawColumns.from_rows; "elements" contains the keys without a column."""
    record = json.loads(line[: MAX_LINE_BYTES + 1].decode("utf-8-sig"), parse_constant=_reject_constant)
    if not isinstance(record, dict) or len(line) > MAX_LINE_BYTES:
        raise ValueError("not an object")
    json.dumps(record, ensure_ascii=False).encode()  # raises for a lone surrogate
    row: dict[str, Any] = {
        "elements": {name: value for name, value in record.items() if name not in _JSON_COLUMNS}
    }
    for name in _JSON_COLUMNS & record.keys():
        value = record[name]
        if name in _ATTRIBUTES_OF_LISTS:
            row[name] = [
                str(item) for item in (value if isinstance(value, list) else [value]) if item is not None
            ]
            row[_ATTRIBUTES_OF_LISTS[name]] = [None] * len(row[name])
        else:
            row[name] = None if value is None else str(value)
    return row


def _reject_constant(constant: str) -> None:
    """Raises ValueError for NaN and Infinity, which ``json.loads`` accepts although they are not JSON."""
    raise ValueError(f"{constant} is not JSON")


def _parse_iso_time(text: str, zone: str) -> int | None:
    """Converts an ISO 8601 time to microseconds since 1970 UTC. Returns None for other texts."""
    try:
        moment = datetime.datetime.fromisoformat(text.strip())
        if moment.tzinfo:
            moment, zone = moment.astimezone(datetime.UTC), ""
    except (ValueError, OverflowError):
        return None
    return parse_time(f"{moment:%Y%m%d%H%M%S}", zone)
