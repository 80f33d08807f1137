"""JSON lines: an object per programme with the names of RawColumns as keys (docs/feeds.md).

Rejected are lines without channel, title or valid start (ISO 8601), with reason ``malformed`` those that are
no JSON object, ``oversized`` over 4 MiB, ``truncated`` (``damaged``) a last line that is cut off.
"""

import datetime
import json
from codecs import BOM_UTF8
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from storage.catalogue.rows import CHANNELS, REJECTS, ROOT
from tasks.ingest.batches import BATCH_BYTES, ProgrammeBatch, excerpt, to_batch
from tasks.ingest.columns import RawColumns, validate_and_type
from tasks.ingest.encoding import Encoding
from tasks.ingest.sources.decompress import FeedStream
from tasks.ingest.sources.feeds import FeedError
from tasks.ingest.xmltv.times import parse_time

LARGEST = 4 << 20  # bytes of a line
LISTS = {"categories": "category_languages", "episode_numbers": "episode_systems"}  # what JSON has, has not
_OTHERS = {"attributes", "details", "elements", *LISTS.values()}
_COLUMNS = RawColumns.__dataclass_fields__.keys() - _OTHERS


def matches(head: bytes) -> bool:
    """Whether the first character is an opening brace."""
    return head.removeprefix(BOM_UTF8).lstrip().startswith(b"{")


def read(stream: FeedStream, batch_rows: int, zone: str) -> Iterator[ProgrammeBatch]:
    """See ``Reader.read``."""
    if b'"channel"' not in (head := stream.head()):
        start = head.strip()[:40].decode("utf-8", "replace")
        raise FeedError(
            f"{stream.feed.source}: not XML, and no JSON lines with a channel; it starts with {start!r}, "
            "expected XMLTV (<tv> … </tv>) or one JSON object per programme"
        )

    def times(texts: pa.StringArray) -> pa.Array:
        return pa.array([_time(text or "", zone) for text in texts.to_pylist()], pa.int64())

    def batch(share_read: float) -> ProgrammeBatch:
        chunk = validate_and_type(RawColumns.of(rows), times)
        settled = [(kept[row][0], reason, excerpt(kept[row][1])) for row, reason in chunk.reasons.items()]
        return ProgrammeBatch(
            **{kind: getattr(chunk, kind) for kind in ("programmes", "details", "originals")},
            channels=to_batch((), CHANNELS),
            rejects=to_batch(sorted([*rejects, *settled]), REJECTS),
            root=to_batch((), ROOT),
            share_read=share_read,
            invalid_bytes=invalid_bytes,
        )

    encoding = Encoding("utf-8", partial(FeedStream, stream.feed, stream.size_cap_bytes))
    rows, kept, rejects, size, invalid_bytes = [], [], [], 0, 0
    for number, line in enumerate(_lines(stream), 1):
        if line.removeprefix(BOM_UTF8).strip():
            size += len(line)
            line, invalid = encoding.decode(line)
            invalid_bytes += invalid
            try:
                rows.append(_row(line))
                kept.append((number, line))
            except (ValueError, RecursionError):
                cut = "malformed" if line.endswith(b"\n") else "damaged" if stream.damage else "truncated"
                rejects.append((number, "oversized" if len(line) > LARGEST else cut, excerpt(line)))
        if len(rows) + len(rejects) >= batch_rows or size >= BATCH_BYTES:
            yield batch(stream.share_read)
            rows, kept, rejects, size, invalid_bytes = [], [], [], 0, 0
    yield batch(1.0)


def _lines(stream: FeedStream) -> Iterator[bytes]:
    """Lines with their line feed; of one that is too long the beginning."""
    held = b""
    for block in stream:
        for piece in block.splitlines(keepends=True):
            held = held[: LARGEST + 1] + piece
            if piece.endswith(b"\n"):
                yield held
                held = b""
    yield held


def _row(line: bytes) -> dict[str, Any]:
    """A row of RawColumns; keys that are none go into ``extra``."""
    found = json.loads(line[: LARGEST + 1].decode("utf-8-sig"), parse_constant=_refuse)
    if not isinstance(found, dict) or len(line) > LARGEST:
        raise ValueError("no object")
    json.dumps(found, ensure_ascii=False).encode()  # raises for a lone surrogate
    row: dict[str, Any] = {"elements": {name: value for name, value in found.items() if name not in _COLUMNS}}
    for name in _COLUMNS & found.keys():
        value = found[name]
        if name in LISTS:
            row[name] = [
                str(each) for each in (value if isinstance(value, list) else [value]) if each is not None
            ]
            row[LISTS[name]] = [None] * len(row[name])
        else:
            row[name] = None if value is None else str(value)
    return row


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _time(text: str, zone: str) -> int | None:
    try:
        moment = datetime.datetime.fromisoformat(text.strip())
        if moment.tzinfo:
            moment, zone = moment.astimezone(datetime.UTC), ""
    except (ValueError, OverflowError):
        return None
    return parse_time(f"{moment:%Y%m%d%H%M%S}", zone)
