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
from typing import Any

from storage.catalogue.rows import CHANNELS, REJECTS, ROOT
from tasks.ingest.batches import BATCH_BYTES, ProgrammeBatch, excerpt, to_batch
from tasks.ingest.columns import RawColumns, clean_columns
from tasks.ingest.encoding import Encoding
from tasks.ingest.sources.decompress import FeedStream
from tasks.ingest.sources.feeds import FeedError
from tasks.ingest.xmltv.times import parse_time

MAX_LINE_BYTES = 4 << 20
# Key of a JSON list -> the column of RawColumns with an attribute of each element, which JSON lines lack.
LISTS = {"categories": "category_languages", "episode_numbers": "episode_systems"}
_NOT_IN_JSON = {"attributes", "details", "elements", *LISTS.values()}
_COLUMNS = RawColumns.__dataclass_fields__.keys() - _NOT_IN_JSON


def matches(head: bytes) -> bool:
    """Returns whether a feed that begins with ``head`` may be JSON lines: the first character is a brace."""
    return head.removeprefix(BOM_UTF8).lstrip().startswith(b"{")


def read(stream: FeedStream, batch_rows: int, zone: str) -> Iterator[ProgrammeBatch]:
    """Parses a feed in JSON lines, and yields batches of about ``batch_rows`` programmes.

    ``zone`` is the time zone of times that state none; empty means UTC.
    """
    if b'"channel"' not in (head := stream.head()):
        start = head.strip()[:40].decode("utf-8", "replace")
        raise FeedError(
            f"{stream.feed.source}: not XML and not JSON lines with a channel; it starts with {start!r}, "
            "expected XMLTV (<tv> … </tv>) or one JSON object per programme"
        )

    def batch(share_read: float) -> ProgrammeBatch:
        chunk = clean_columns(RawColumns.from_rows(rows), partial(_parse_iso_time, zone=zone))
        invalid = [(lines[row][0], reason, excerpt(lines[row][1])) for row, reason in chunk.reasons.items()]
        return ProgrammeBatch(
            **{kind: getattr(chunk, kind) for kind in ("programmes", "details", "originals")},
            channels=to_batch((), CHANNELS),
            rejects=to_batch(sorted([*rejects, *invalid]), REJECTS),
            root=to_batch((), ROOT),
            share_read=share_read,
            invalid_bytes=invalid_bytes,
        )

    encoding = Encoding("utf-8", partial(FeedStream, stream.feed, stream.size_cap_bytes))
    rows, lines, rejects, size, invalid_bytes = [], [], [], 0, 0
    for number, line in enumerate(_lines(stream), 1):
        if line.removeprefix(BOM_UTF8).strip():
            size += len(line)
            line, invalid_count = encoding.decode(line)
            invalid_bytes += invalid_count
            try:
                rows.append(_parse_line(line))
                lines.append((number, line))
            except (ValueError, RecursionError):
                reject = "malformed" if line.endswith(b"\n") else "damaged" if stream.damage else "truncated"
                rejects.append((number, "oversized" if len(line) > MAX_LINE_BYTES else reject, excerpt(line)))
        if len(rows) + len(rejects) >= batch_rows or size >= BATCH_BYTES:
            yield batch(stream.share_read)
            rows, lines, rejects, size, invalid_bytes = [], [], [], 0, 0
    yield batch(1.0)


def _lines(stream: FeedStream) -> Iterator[bytes]:
    """Yields the lines of a feed with their line feed. Truncates lines that exceed MAX_LINE_BYTES."""
    line = b""
    for block in stream:
        for piece in block.splitlines(keepends=True):
            line = line[: MAX_LINE_BYTES + 1] + piece
            if piece.endswith(b"\n"):
                yield line
                line = b""
    yield line


def _parse_line(line: bytes) -> dict[str, Any]:
    """Converts a line to a row for RawColumns.from_rows. Keys without a column go to "elements"."""
    record = json.loads(line[: MAX_LINE_BYTES + 1].decode("utf-8-sig"), parse_constant=_reject_constant)
    if not isinstance(record, dict) or len(line) > MAX_LINE_BYTES:
        raise ValueError("not an object")
    json.dumps(record, ensure_ascii=False).encode()  # raises for a lone surrogate
    row: dict[str, Any] = {
        "elements": {name: value for name, value in record.items() if name not in _COLUMNS}
    }
    for name in _COLUMNS & record.keys():
        value = record[name]
        if name in LISTS:
            row[name] = [
                str(item) for item in (value if isinstance(value, list) else [value]) if item is not None
            ]
            row[LISTS[name]] = [None] * len(row[name])
        else:
            row[name] = None if value is None else str(value)
    return row


def _reject_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _parse_iso_time(text: str, zone: str) -> int | None:
    try:
        moment = datetime.datetime.fromisoformat(text.strip())
        if moment.tzinfo:
            moment, zone = moment.astimezone(datetime.UTC), ""
    except (ValueError, OverflowError):
        return None
    return parse_time(f"{moment:%Y%m%d%H%M%S}", zone)
