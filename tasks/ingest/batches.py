"""The interface between formats and the catalogue: a reader turns a stream into batches of Arrow columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from tasks.ingest.encoding import show_invalid
from tasks.ingest.sources.decompress import FeedStream

BATCH_BYTES = 8 << 20  # of a feed that make a batch at most, about
EXCERPT = 200  # characters of a reject that are kept


@dataclass(frozen=True, kw_only=True)
class ProgrammeBatch:
    """Part of a feed; the columns are those of storage/catalogue/rows.py."""

    programmes: pa.RecordBatch
    details: pa.RecordBatch
    originals: pa.RecordBatch
    channels: pa.RecordBatch
    rejects: pa.RecordBatch
    root: pa.RecordBatch  # with the first batch
    share_read: float  # of the file so far, 0 to 1
    invalid_bytes: int = 0  # in the feed's encoding; they are dropped from texts


class Reader(Protocol):
    """A format of guides; a module or an object. readers.py lists them."""

    def matches(self, head: bytes) -> bool:
        """Whether a feed that begins with these bytes has this format."""
        ...

    def read(self, stream: FeedStream, batch_rows: int, zone: str) -> Iterator[ProgrammeBatch]:
        """At least one batch, of about ``batch_rows`` programmes; the last one may be empty.

        Args:
            zone: Of times without a zone; empty is UTC.

        Raises:
            FeedError: It is empty, has another format, is too large, or nothing in it can be read.
        """
        ...


def to_batch(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Tuples as Arrow."""
    columns = list(zip(*rows)) if rows else [()] * len(schema)
    return pa.RecordBatch.from_arrays([pa.array(*each) for each in zip(columns, schema.types)], schema=schema)


def number_from_first_(batches: dict[str, list[pa.RecordBatch]]) -> None:
    """Counts the column ``row`` of details and originals over all batches."""
    firsts = np.cumsum([0, *(batch.num_rows for batch in batches["programmes"])])
    for kind in ("details", "originals"):
        for place, (batch, first) in enumerate(zip(batches[kind], firsts)):
            if batch.num_rows and first:
                row = pa.array(batch.column("row").to_numpy() + first)
                batches[kind][place] = batch.set_column(0, "row", row)


def excerpt(content: bytes) -> str:
    """The beginning of a reject on one line."""
    text = show_invalid(content[: 4 * EXCERPT].decode("utf-8", "replace"))
    return " ".join(text.split())[:EXCERPT]
