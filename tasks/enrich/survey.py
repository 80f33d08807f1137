"""Reads the programmes of a guide with the code of the stage ingest, and finds where elements are missing.

It writes the files of a Guide that the queries of storage/catalogue need: channels.parquet,
descriptions.parquet (only of programmes that lack a category), and programmes.parquet, in the order of the
guide. programmes.parquet has additional columns: ``place`` is the offset in the guide at which a category is
inserted (-1: no category is inserted), and ``indent`` is the white space to insert before the category.
``number_place`` and ``number_indent`` are the offset and the white space for an episode number.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from storage.catalogue.local_time import local_zone
from storage.catalogue.rows import CHANNELS, DETAILS, PROGRAMMES
from tasks.enrich.episodes import NUMBERS
from tasks.enrich.insertion import CATEGORY_PREDECESSORS, NUMBER_PREDECESSORS, find_insertion_point
from tasks.enrich.settings import EnrichOptions
from tasks.enrich.source import Source
from tasks.ingest.batches import to_batch
from tasks.ingest.encoding import Encoding
from tasks.ingest.xmltv.frames import Frame, hide_cdata
from tasks.ingest.xmltv.prolog import read_prolog
from tasks.ingest.xmltv.records import FrameRecords, read_records
from tasks.tokenize.contexts import FACTS

BATCH_ROWS = 20_000  # programmes in memory at once
_CONTENT_NAMES = (
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
_CONTENT_FIELDS = [PROGRAMMES.field(name) for name in _CONTENT_NAMES]
_FACT_FIELDS = [DETAILS.field(name) for name in FACTS]
_POSITION_FIELDS = [
    pa.field(prefix + name, data_type)
    for prefix in ("", "number_")
    for name, data_type in (("place", pa.int64()), ("indent", pa.binary()))
]
SCHEMA = pa.schema(
    [("source", pa.string()), *_CONTENT_FIELDS, *_FACT_FIELDS, ("zone", pa.string()), *_POSITION_FIELDS]
)
_DESCRIPTION_SCHEMA = pa.schema(
    [("title", pa.string()), ("description", pa.string()), ("airings", pa.int64())]
)


@dataclass(frozen=True, kw_only=True)
class Survey:
    """Numbers of readable and unreadable programmes of a guide, its encoding, and its damage."""

    programmes: int  # programmes with title, channel and start
    unreadable: int  # programmes that cannot be read and are copied unchanged
    encoding: str  # encoding of the text that is inserted
    damage: str  # why the guide ends early; "" if it is not damaged


def read_survey(source: Source, folder: Path, options: EnrichOptions) -> Survey:
    """Reads a guide once, and writes its programmes, channels and descriptions as Parquet files to a folder.

    Raises:
        FeedError: The file is not XMLTV.
    """
    prolog, blocks = read_prolog(source.pieces(), source.feed.source)
    encoding = Encoding(prolog.encoding, source.pieces)
    channels: list[tuple] = []
    read_count = unreadable = 0
    with (
        pq.ParquetWriter(folder / "programmes.parquet", SCHEMA) as programmes,
        pq.ParquetWriter(
            folder / "descriptions.parquet", _DESCRIPTION_SCHEMA, compression="zstd"
        ) as descriptions,
    ):
        pending_tables: list[pa.Table] = []
        for records in read_records(prolog, blocks, encoding, source.zone):
            channels += records.channels
            spans, complete_count = records.find_spans()
            table, description_table = _make_tables(records, spans, options, source)
            descriptions.write_table(description_table)
            read_count, unreadable = read_count + len(table), unreadable + complete_count - len(table)
            pending_tables.append(table)
            if sum(map(len, pending_tables)) >= BATCH_ROWS:
                programmes.write_table(pa.concat_tables(pending_tables))
                pending_tables.clear()
        programmes.write_table(pa.concat_tables([*pending_tables, SCHEMA.empty_table()]))
    pa.default_memory_pool().release_unused()
    channel_names = to_batch(channels, CHANNELS)
    sources = pa.array([source.feed.source] * len(channel_names), pa.string())
    columns = {"source": sources, "channel": channel_names["channel"], "name": channel_names["name"]}
    pq.write_table(pa.table(columns), folder / "channels.parquet")
    return Survey(
        programmes=read_count, unreadable=unreadable, encoding=encoding.insertion_codec, damage=source.damage
    )


def _make_tables(
    records: FrameRecords, spans: np.ndarray, options: EnrichOptions, source: Source
) -> tuple[pa.Table, pa.Table]:
    """Returns the rows of programmes.parquet and of descriptions.parquet for the programmes of a frame.

    ``spans`` has the first byte and the end of each programme in the frame, or -1 for programmes to omit.
    """
    rows, details = records.chunk.programmes, records.chunk.details
    has_span = spans[:, 0] >= 0
    lacks_category = has_span & (_is_empty(rows["categories"]) | options.changes_all)
    is_episode = has_span & np.asarray(rows["sub_title"].is_valid()) & options.adds_numbers
    places, indents = _insertion_points(records.frame, spans, lacks_category, CATEGORY_PREDECESSORS)
    number_places, number_indents = _insertion_points(
        records.frame, spans, is_episode & _is_empty(rows["episode_numbers"]), NUMBER_PREDECESSORS
    )
    # If elements are in the wrong order, no number is inserted: insertions must be in the order of the file.
    number_places[number_places < places] = -1
    zone = local_zone(source.zone, source.home_zone)
    columns: dict[str, object] = {name: rows[name] for name in _CONTENT_NAMES}
    row_numbers = pa.array(np.arange(len(rows)))
    detail_of_row = pc.index_in(row_numbers, details["row"])  # pyright: ignore[reportAttributeAccessIssue]
    columns |= {name: details[name].take(detail_of_row) for name in FACTS}
    columns |= {
        name: pa.array([text] * len(rows), pa.string())
        for name, text in (("source", source.feed.source), ("zone", zone))
    }
    values = (places, indents, number_places, number_indents)
    columns |= {
        field.name: pa.array(column, field.type)
        for field, column in zip(_POSITION_FIELDS, values, strict=True)
    }
    table = pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA).filter(pa.array(has_span))
    described_rows = details["row"].to_numpy()
    is_selected = pa.array((places[described_rows] >= 0) & np.asarray(details["description"].is_valid()))
    titles = rows["title"].take(pa.array(described_rows)).filter(is_selected)
    airings = pa.array(np.ones(len(titles), np.int64))
    return table, pa.table(
        [titles, details["description"].filter(is_selected), airings], schema=_DESCRIPTION_SCHEMA
    )


def _is_empty(lists: pa.ListArray) -> np.ndarray:
    """Returns, for each list, whether it is null or empty: bool (lists,)."""
    return np.asarray(lists.value_lengths().fill_null(0)) == 0


def _insertion_points(
    frame: Frame, spans: np.ndarray, is_needed: np.ndarray, predecessors: re.Pattern[bytes]
) -> tuple[np.ndarray, list[bytes]]:
    """Finds, for each programme, the offset in the guide at which to insert an element, and the indent.

    The offset is -1 for programmes that need no element (``is_needed``), and for programmes that have no
    element of the pattern ``predecessors``, after which it would be inserted.
    """
    places, indents = np.full(len(spans), -1), [b""] * len(spans)
    masked_content = hide_cdata(frame.content)
    for row in np.flatnonzero(is_needed).tolist():
        offset, indents[row] = find_insertion_point(
            frame.content, masked_content, tuple(spans[row].tolist()), predecessors
        )
        places[row] = frame.offset + offset if offset >= 0 else -1
    return places, indents
