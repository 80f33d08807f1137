"""Lists the formats of feeds.

A new format needs a module with ``matches`` and ``read``, and an entry in READERS.
"""

from collections.abc import Iterator

from tasks.ingest import json_lines
from tasks.ingest.batches import ProgrammeBatch, Reader
from tasks.ingest.sources.decompress import FeedStream
from tasks.ingest.xmltv import reader as xmltv

READERS: list[Reader] = [json_lines, xmltv]  # the first match reads the feed; XMLTV matches everything


def read_batches(stream: FeedStream, batch_rows: int, zone: str = "") -> Iterator[ProgrammeBatch]:
    """Reads a feed with the reader of its format (see ``Reader.read``)."""
    head = stream.head()
    return next(reader for reader in READERS if reader.matches(head)).read(stream, batch_rows, zone)
