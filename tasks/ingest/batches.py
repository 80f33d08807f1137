"""Batches of Arrow columns, which the parsers of guide formats pass to the writer of the catalogue."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from tasks.ingest.encoding import show_invalid
from tasks.ingest.sources.decompress import FeedStream

BATCH_BYTES = 8 << 20  # approximate maximum number of bytes of the feed per batch
EXCERPT_CHARACTERS = 200  # maximum length of the stored excerpt of a rejected element


@dataclass(frozen=True, kw_only=True)
class ProgrammeBatch:
    """Batch of programmes, channels and rejected elements of a feed (schemas: storage/catalogue/rows.py)."""

    programmes: pa.RecordBatch
    details: pa.RecordBatch  # descriptions, people, ratings and other facts of programmes
    originals: pa.RecordBatch  # texts of programmes before cleaning, if cleaning has changed them
    channels: pa.RecordBatch
    rejects: pa.RecordBatch  # elements that cannot be read, with reasons
    root: pa.RecordBatch  # attributes of the root element; empty except in the first batch
    share_read: float  # share of the file that has been read, 0 to 1
    invalid_bytes: int = 0  # number of bytes in the batch that are invalid in the encoding of the feed


class Reader(Protocol):
    """Parser of a guide format: a module or object with ``matches`` and ``read``. readers.py lists them."""

    def matches(self, head: bytes) -> bool:
        """Returns whether a feed that begins with the bytes ``head`` has this format."""
        ...

    def read(self, stream: FeedStream, batch_rows: int, zone: str) -> Iterator[ProgrammeBatch]:
        """Parses a feed, and yields at least one batch of about ``batch_rows`` programmes.

        The last batch may be empty.

        Args:
            stream: Uncompressed bytes of the feed.
            batch_rows: Approximate number of programmes per batch.
            zone: Time zone of the times without an offset in the feed; empty means UTC.

        Raises:
            FeedError: The feed is empty, too large, unreadable or has another format.
        """
        ...


def to_batch(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Converts tuples, one per row, to an Arrow record batch with a schema."""
    columns = list(zip(*rows)) if rows else [()] * len(schema)
    return pa.RecordBatch.from_arrays(
        [pa.array(values, type_) for values, type_ in zip(columns, schema.types)], schema=schema
    )


def renumber_rows_(batches: dict[str, list[pa.RecordBatch]]) -> None:
    """Changes the column ``row`` of details and originals in place, so that batches can be concatenated.

    ``row`` is the index of a programme in its batch. It becomes the index in the concatenated batches.

    Args:
        batches: "programmes", "details" and "originals" -> lists of batches; batches at the same position of
            the three lists belong together.
    """
    first_rows = np.cumsum([0, *(batch.num_rows for batch in batches["programmes"])])
    for kind in ("details", "originals"):
        for position, (batch, first_row) in enumerate(zip(batches[kind], first_rows)):
            if batch.num_rows and first_row:
                rows = pa.array(batch.column("row").to_numpy() + first_row)
                batches[kind][position] = batch.set_column(0, "row", rows)


def excerpt(content: bytes) -> str:
    """Returns the first EXCERPT_CHARACTERS characters of a rejected element as one line of text."""
    text = show_invalid(content[: 4 * EXCERPT_CHARACTERS].decode("utf-8", "replace"))
    return " ".join(text.split())[:EXCERPT_CHARACTERS]
