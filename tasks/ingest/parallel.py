"""Parsing by several processes, here or on other machines (tasks/pool.py): each parses a feed into Arrow files, one process writes.

A parsed feed is a folder of six Arrow streams, one a kind of rows, that go side by side batch by batch; the writer
maps them, so nothing is copied through a pipe and memory is bounded by a few batches. On one machine the writer parses too
whenever it would have to wait.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from storage.catalogue.rows import CHANNELS, DETAILS, ORIGINALS, PROGRAMMES, REJECTS, ROOT
from tasks import pool
from tasks.ingest.feeds import Feed
from tasks.ingest.settings import IngestSettings
from tasks.ingest.streams import FeedStream
from tasks.ingest.xmltv import Batch, read_batches

KINDS = {
    "programmes": PROGRAMMES,
    "details": DETAILS,
    "originals": ORIGINALS,
    "channels": CHANNELS,
    "rejects": REJECTS,
    "root": ROOT,
}
TOGETHER = 16  # batches of a parsed feed written at a time: enough for DuckDB to use every core


@dataclass(frozen=True)
class Pool:
    """Where feeds are parsed.

    Attributes:
        submit: ``submit(function, *arguments)`` gives a future.
        helped: Whether this process parses what no other one has begun.
    """

    submit: pool.Submit
    helped: bool


class Parsing:
    """A feed that is parsed into a folder, from now on."""

    def __init__(self, place: Pool, feed: Feed, settings: IngestSettings, folder: Path) -> None:
        self.helped = place.helped
        self.folder = folder
        self.arguments = (feed, settings.size_cap_bytes, settings.batch_rows, settings.zone(feed.source), folder)
        self.future = place.submit(parse_to_folder, *self.arguments)

    def help(self) -> bool:
        """Parses it here, unless another process has begun; whether it did."""
        if not (self.helped and isinstance(self.future, Future) and self.future.cancel()):
            return False
        self.future = Future()
        try:
            self.future.set_result(parse_to_folder(*self.arguments))
        except Exception as error:  # told in its turn, like those of other processes
            self.future.set_exception(error)
        return True

    def batches(self, later: Iterable[Parsing]) -> Iterator[Batch]:
        """What it gives; while waiting for it, ``later`` ones are parsed here."""
        while not self.future.done() and any(parsing.help() for parsing in (self, *later)):
            pass
        return read_folder(self.folder, self.future.result())


def parse_to_folder(feed: Feed, size_cap_bytes: int, batch_rows: int, zone: str, folder: Path) -> int:
    """Parses a feed into a new folder; returns the number of batches.

    Raises:
        FeedError: It cannot be used.
    """
    shutil.rmtree(folder, ignore_errors=True)  # of a worker that died: Dask and Ray try again elsewhere
    folder.mkdir(parents=True)
    count = 0
    with ExitStack() as stack:
        writers = {kind: stack.enter_context(pa.ipc.new_stream(str(folder / kind), schema)) for kind, schema in KINDS.items()}
        for batch in read_batches(FeedStream(feed, size_cap_bytes), batch_rows, zone):
            for kind, writer in writers.items():
                writer.write_batch(getattr(batch, kind))
            count += 1
    return count


def read_folder(folder: Path, batches: int) -> Iterator[Batch]:
    """The batches of a parsed feed, in order; the folder is removed when all are taken or the reading is given up."""
    try:
        with ExitStack() as stack:
            readers = {kind: stack.enter_context(pa.ipc.open_stream(stack.enter_context(pa.memory_map(str(folder / kind))))) for kind in KINDS}
            for first in range(0, batches, TOGETHER):
                last = min(batches, first + TOGETHER)
                read = [{kind: reader.read_next_batch() for kind, reader in readers.items()} for _ in range(first, last)]
                yield Batch(**_together(read), share_read=last / batches)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _together(batches: list[dict[str, pa.RecordBatch]]) -> dict[str, pa.Table]:
    """Batches as one, their rows counted from the first of all."""
    first = 0
    for batch in batches:
        for kind in ("details", "originals"):
            batch[kind] = batch[kind].set_column(0, "row", pa.array(batch[kind].column("row").to_numpy() + first))
        first += batch["programmes"].num_rows
    return {kind: pa.Table.from_batches([batch[kind] for batch in batches]) for kind in KINDS}


@contextmanager
def open_pool(settings: IngestSettings) -> Iterator[Pool]:
    """Where feeds are parsed, as the settings say; on this machine this process is one of the workers."""
    helped = settings.pool == "processes"
    with pool.open_pool(replace(settings, workers=settings.workers - 1) if helped else settings) as submit:
        yield Pool(submit, helped)
