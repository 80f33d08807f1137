"""Lists the parsers of guide formats, and selects the parser of a feed.

A new format needs a module with the functions of ``Reader`` (batches.py), and an entry in READERS.
"""

from collections.abc import Iterator

from tasks.ingest import json_lines
from tasks.ingest.batches import ProgrammeBatch, Reader
from tasks.ingest.sources.decompress import FeedStream
from tasks.ingest.xmltv import reader as xmltv

READERS: list[Reader] = [json_lines, xmltv]  # the first reader that matches is used; XMLTV matches any feed


def read_batches(stream: FeedStream, batch_rows: int, zone: str = "") -> Iterator[ProgrammeBatch]:
    """Parses a feed with the parser of its format, and yields batches of about ``batch_rows`` programmes."""
    head = stream.head()
    return next(reader for reader in READERS if reader.matches(head)).read(stream, batch_rows, zone)
