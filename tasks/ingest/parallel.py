"""Parses feeds in several processes or on several machines, while one process writes the catalogue.

A worker writes a parsed feed to a folder of six Arrow streams, one per field of ProgrammeBatch, with the same
batches. The writing process maps these files into memory, so nothing is copied through a pipe, and only a few
batches are in memory. On one machine, the writing process also parses feeds while it waits for a worker.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from storage.catalogue.rows import CHANNELS, DETAILS, ORIGINALS, PROGRAMMES, REJECTS, ROOT
from tasks.ingest.batches import ProgrammeBatch
from tasks.ingest.readers import read_batches
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.decompress import FeedStream
from tasks.ingest.sources.feeds import Feed
from tasks.pool import Submit

_SCHEMAS = (PROGRAMMES, DETAILS, ORIGINALS, CHANNELS, REJECTS, ROOT)
SCHEMA_OF_KIND = dict(zip(("programmes", "details", "originals", "channels", "rejects", "root"), _SCHEMAS))


class Parsing:
    """Feed that a worker process parses into a folder."""

    def __init__(self, submit: Submit, feed: Feed, settings: IngestSettings, folder: Path) -> None:
        self.settings, self.folder = settings, folder
        zone = settings.zone(feed.source)
        self.arguments = (feed, settings.size_cap_bytes, settings.batch_rows, zone, folder)
        self.future = submit(parse_to_folder, *self.arguments)

    def run_here(self) -> bool:
        """Parses the feed in this process unless a worker has started to parse it. Returns whether it did."""
        if not (self.settings.parses_in_writer and isinstance(self.future, Future) and self.future.cancel()):
            return False
        self.future = Future()
        try:
            self.future.set_result(parse_to_folder(*self.arguments))
        except Exception as error:  # raised by ``batches``, like errors of other processes
            self.future.set_exception(error)
        return True

    def batches(self, later: Iterable[Parsing]) -> Iterator[ProgrammeBatch]:
        """Returns the batches of the feed. Parses it and the feeds ``later`` here while workers are busy."""
        while not self.future.done() and any(parsing.run_here() for parsing in (self, *later)):
            pass
        return read_folder(self.folder, self.future.result())


def parse_to_folder(feed: Feed, size_cap_bytes: int, batch_rows: int, zone: str, folder: Path) -> list[int]:
    """Parses a feed, writes its batches to a new folder, and returns the invalid bytes of each batch."""
    # left by a dead worker, whose task Dask and Ray repeat on another worker
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with ExitStack() as stack:
        streams = {
            kind: pa.ipc.new_stream(str(folder / kind), schema) for kind, schema in SCHEMA_OF_KIND.items()
        }
        writers = {kind: stack.enter_context(stream) for kind, stream in streams.items()}
        invalid_bytes = []
        for batch in read_batches(FeedStream(feed, size_cap_bytes), batch_rows, zone):
            for kind, writer in writers.items():
                writer.write_batch(getattr(batch, kind))
            invalid_bytes.append(batch.invalid_bytes)
    return invalid_bytes


def read_folder(folder: Path, invalid_bytes: Sequence[int]) -> Iterator[ProgrammeBatch]:
    """Yields the batches that ``parse_to_folder`` wrote. Removes the folder at the end or after an error.

    Args:
        folder: Folder of a parsed feed.
        invalid_bytes: Number of invalid bytes of each batch.
    """
    try:
        with ExitStack() as stack:
            maps = {kind: stack.enter_context(pa.memory_map(str(folder / kind))) for kind in SCHEMA_OF_KIND}
            readers = {kind: stack.enter_context(pa.ipc.open_stream(maps[kind])) for kind in SCHEMA_OF_KIND}
            for number, invalid in enumerate(invalid_bytes, 1):
                rows = {kind: reader.read_next_batch() for kind, reader in readers.items()}
                share_read = number / len(invalid_bytes)
                yield ProgrammeBatch(**rows, share_read=share_read, invalid_bytes=invalid)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
