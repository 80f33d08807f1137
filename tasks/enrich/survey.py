"""Reads the programmes of a guide as ingest does, and locates missing elements.

Writes the files of a Guide that the queries of storage/catalogue need: channels.parquet, descriptions.parquet
(of programmes with a missing category), and programmes.parquet, in the order of the file, with the additional
columns ``place`` (offset at which a category is inserted, -1 for none), ``indent`` (white space before it),
and ``number_place`` and ``number_indent`` (the same for an episode number).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.catalogue.local_time import local_zone
from storage.catalogue.rows import CHANNELS, PROGRAMMES
from tasks.enrich.episodes import NUMBERS
from tasks.enrich.programmes import CATEGORY, NUMBER, Block, cut_blocks, without_comments
from tasks.enrich.settings import EnrichOptions
from tasks.enrich.source import Source
from tasks.ingest.batches import to_batch
from tasks.ingest.columns import RawColumns, validate_and_type
from tasks.ingest.encoding import Encoding
from tasks.ingest.xmltv.fallback.elements import roots
from tasks.ingest.xmltv.fallback.programmes import read_tree
from tasks.ingest.xmltv.frames import Frame
from tasks.ingest.xmltv.reader import PIECE
from tasks.ingest.xmltv.scan import scan
from tasks.ingest.xmltv.text import repaired
from tasks.ingest.xmltv.times import parse_times

ROWS = 20_000  # programmes in memory at a time
_CONTENT = (
    "channel",
    "start",
    "stop",
    "title",
    "title_language",
    "sub_title",
    "categories",
    *NUMBERS,
    "date",
)
_COLUMNS = [PROGRAMMES.field(name) for name in _CONTENT]
_PLACES = [
    pa.field(prefix + name, form)
    for prefix in ("", "number_")
    for name, form in (("place", pa.int64()), ("indent", pa.binary()))
]
SCHEMA = pa.schema([("source", pa.string()), *_COLUMNS, ("zone", pa.string()), *_PLACES])
_DESCRIPTIONS = pa.schema([("title", pa.string()), ("description", pa.string()), ("airings", pa.int64())])


@dataclass(frozen=True, kw_only=True)
class Survey:
    """Counts of a guide's programmes, and its encoding."""

    programmes: int  # with title, channel and start
    unreadable: int  # elements that cannot be read and are copied unchanged
    encoding: str


def read_survey(source: Source, folder: Path, options: EnrichOptions) -> Survey:
    """Reads a guide once and writes its files into a folder."""
    encoding, head, pieces = source.body()
    channels: list[tuple] = []
    read = unreadable = 0
    with (
        pq.ParquetWriter(folder / "programmes.parquet", SCHEMA) as programmes,
        pq.ParquetWriter(folder / "descriptions.parquet", _DESCRIPTIONS, compression="zstd") as descriptions,
    ):
        pending: list[pa.Table] = []
        for block in cut_blocks(pieces, head):
            channels += _channels(block, encoding)
            table, described = _read(block, encoding, options, source)
            descriptions.write_table(described)
            read, unreadable = read + len(table), unreadable + len(block.spans) - len(table)
            pending.append(table)
            if sum(map(len, pending)) >= ROWS:
                programmes.write_table(pa.concat_tables(pending))
                pending.clear()
        programmes.write_table(pa.concat_tables([*pending, SCHEMA.empty_table()]))
    pa.default_memory_pool().release_unused()
    named = to_batch(channels, CHANNELS)
    sources = pa.array([source.feed.source] * len(named), pa.string())
    columns = {"source": sources, "channel": named["channel"], "name": named["name"]}
    pq.write_table(pa.table(columns), folder / "channels.parquet")
    return Survey(programmes=read, unreadable=unreadable, encoding=encoding.written)


def _read(
    block: Block, encoding: Encoding, options: EnrichOptions, source: Source
) -> tuple[pa.Table, pa.Table]:
    """Returns rows of SCHEMA and of descriptions for the readable programmes."""
    raw, spans = _columns([block.content[begin:end] for begin, end in block.spans], encoding, source.zone)
    chunk = validate_and_type(raw, partial(parse_times, zone=source.zone))
    readable = np.setdiff1d(np.arange(len(spans)), list(chunk.reasons))
    rows = chunk.programmes
    table = pa.table({name: rows[name] for name in _CONTENT})
    table = table.add_column(0, "source", pa.array([source.feed.source] * len(table), pa.string()))
    zone = local_zone(source.zone, source.home_zone)
    table = table.append_column("zone", pa.array([zone] * len(table), pa.string()))
    readable_spans = [block.spans[number] for number in spans[readable]]
    places, indents = _places(block, readable_spans, _lacks(rows["categories"]) | options.every, CATEGORY)
    named = np.asarray(rows["sub_title"].is_valid()) & options.episodes
    number_places, number_indents = _places(
        block, readable_spans, _lacks(rows["episode_numbers"]) & named, NUMBER
    )
    number_places[number_places < places] = -1  # damaged programme; additions must be in file order
    for field, values in zip(_PLACES, (places, indents, number_places, number_indents), strict=True):
        table = table.append_column(field, pa.array(values, field.type))
    described = chunk.details["row"].to_numpy()
    chosen = pa.array((places[described] >= 0) & np.asarray(chunk.details["description"].is_valid()))
    titles = rows["title"].take(pa.array(described)).filter(chosen)
    columns = [titles, chunk.details["description"].filter(chosen), pa.array(np.ones(len(titles), np.int64))]
    return table.cast(SCHEMA), pa.table(columns, schema=_DESCRIPTIONS)


def _lacks(lists: pa.ListArray) -> np.ndarray:
    return np.asarray(lists.value_lengths().fill_null(0)) == 0


def _places(
    block: Block, spans: Sequence[tuple[int, int]], mask: np.ndarray, predecessors: re.Pattern[bytes]
) -> tuple[np.ndarray, list[bytes]]:
    places, indents = np.full(len(spans), -1), [b""] * len(spans)
    for row in np.flatnonzero(mask).tolist():
        if place := block.place(spans[row], predecessors):
            places[row], indents[row] = place
    return places, indents


def _columns(contents: Sequence[bytes], encoding: Encoding, zone: str) -> tuple[RawColumns, np.ndarray]:
    """Parses programmes; also returns the indices of the readable ones."""
    raw = scan(repaired(without_comments(b"".join(contents)), encoding)[0]) if contents else None
    if raw is not None and len(raw.title) == len(contents):
        return raw, np.arange(len(contents))
    rows: list[dict] = []
    numbers: list[int] = []
    for first, group in _groups(contents):
        parsed = _parsed(b"".join(group), encoding, zone)
        if len(parsed) == len(group):
            rows += parsed
            numbers += range(first, first + len(group))
            continue
        for number, content in enumerate(group, first):
            if len(parsed := _parsed(content, encoding, zone)) == 1:
                rows += parsed
                numbers.append(number)
    return RawColumns.of(rows), np.array(numbers, dtype=np.int64)


def _groups(contents: Sequence[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    first, group, size = 0, [], 0
    for number, content in enumerate(contents):
        group.append(content)
        size += len(content)
        if size >= PIECE or number + 1 == len(contents):
            yield first, group
            first, group, size = number + 1, [], 0


def _parsed(content: bytes, encoding: Encoding, zone: str) -> list[dict]:
    rows: list[dict] = []
    frame = Frame(content=repaired(without_comments(content), encoding)[0], line=1)
    for root, _, _ in roots(frame):
        if root is not None:
            read_tree(root, rows, [], zone)
    return rows


def _channels(block: Block, encoding: Encoding) -> list[tuple]:
    """Returns rows of CHANNELS from the elements between programmes."""
    rows: list[tuple] = []
    ends = [0, *(end for _, end in block.spans)]
    begins = [*(begin for begin, _ in block.spans), len(block.content)]
    for begin, end in zip(ends, begins, strict=True):
        if block.masked.find(b"<channel", begin, end) >= 0:
            content = without_comments(block.content[begin:end])
            last = content.rfind(b"</channel>") + len(b"</channel>")
            for root, _, _ in roots(Frame(content=repaired(content[:last], encoding)[0], line=1)):
                if root is not None:
                    read_tree(root, [], rows, "")
    return rows
