"""Parsing by several processes, here or on other machines (tasks/pool.py); one process writes.

A parsed feed is a folder of six Arrow streams, one per kind of rows, aligned batch by batch; the writer
maps them, so nothing is copied through a pipe and memory is bounded by a few batches. On one machine the
writer parses too whenever it would have to wait.
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
KINDS = dict(zip(("programmes", "details", "originals", "channels", "rejects", "root"), _SCHEMAS))


class Parsing:
    """A feed that is parsed into a folder, from now on."""

    def __init__(self, submit: Submit, feed: Feed, settings: IngestSettings, folder: Path) -> None:
        self.settings, self.folder = settings, folder
        zone = settings.zone(feed.source)
        self.arguments = (feed, settings.size_cap_bytes, settings.batch_rows, zone, folder)
        self.future = submit(parse_to_folder, *self.arguments)

    def help(self) -> bool:
        """Parses it here, unless another process has begun; returns whether it did."""
        if not (self.settings.is_helped and isinstance(self.future, Future) and self.future.cancel()):
            return False
        self.future = Future()
        try:
            self.future.set_result(parse_to_folder(*self.arguments))
        except Exception as error:  # raised when its batches are read, like those of other processes
            self.future.set_exception(error)
        return True

    def batches(self, later: Iterable[Parsing]) -> Iterator[ProgrammeBatch]:
        """Its batches; while waiting for them, ``later`` ones are parsed here."""
        while not self.future.done() and any(parsing.help() for parsing in (self, *later)):
            pass
        return read_folder(self.folder, self.future.result())


def parse_to_folder(feed: Feed, size_cap_bytes: int, batch_rows: int, zone: str, folder: Path) -> list[int]:
    """Parses a feed into a new folder; returns the number of invalid bytes of each batch."""
    shutil.rmtree(folder, ignore_errors=True)  # of a worker that died: Dask and Ray try again elsewhere
    folder.mkdir(parents=True)
    with ExitStack() as stack:
        streams = {kind: pa.ipc.new_stream(str(folder / kind), form) for kind, form in KINDS.items()}
        writers = {kind: stack.enter_context(stream) for kind, stream in streams.items()}
        invalid_bytes = []
        for batch in read_batches(FeedStream(feed, size_cap_bytes), batch_rows, zone):
            for kind, writer in writers.items():
                writer.write_batch(getattr(batch, kind))
            invalid_bytes.append(batch.invalid_bytes)
    return invalid_bytes


def read_folder(folder: Path, invalid_bytes: Sequence[int]) -> Iterator[ProgrammeBatch]:
    """The batches of a parsed feed, in order; the folder is removed at the end or after an error."""
    try:
        with ExitStack() as stack:
            maps = {kind: stack.enter_context(pa.memory_map(str(folder / kind))) for kind in KINDS}
            readers = {kind: stack.enter_context(pa.ipc.open_stream(maps[kind])) for kind in KINDS}
            for number, invalid in enumerate(invalid_bytes, 1):
                rows = {kind: reader.read_next_batch() for kind, reader in readers.items()}
                share_read = number / len(invalid_bytes)
                yield ProgrammeBatch(**rows, share_read=share_read, invalid_bytes=invalid)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
