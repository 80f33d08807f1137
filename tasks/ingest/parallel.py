"""Parsing by several processes, here or on other machines: each parses a feed into Arrow files, one process writes.

A parsed feed is a folder of five Arrow streams, one a kind of rows, that go side by side batch by batch; the writer maps
them, so nothing is copied through a pipe and memory is bounded by a batch.
"""

from __future__ import annotations

import multiprocessing
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from storage.catalogue.rows import CHANNELS, DETAILS, ORIGINALS, PROGRAMMES, REJECTS
from tasks.ingest.feeds import Feed
from tasks.ingest.settings import IngestSettings
from tasks.ingest.streams import FeedStream
from tasks.ingest.xmltv import Batch, read_batches

KINDS = {"programmes": PROGRAMMES, "details": DETAILS, "originals": ORIGINALS, "channels": CHANNELS, "rejects": REJECTS}


class _Future(Protocol):
    def result(self) -> Any: ...


Submit = Callable[..., _Future]


def parse_to_folder(feed: Feed, size_cap_bytes: int, batch_rows: int, zone: str, folder: Path) -> int:
    """Parses a feed into a new folder; returns the number of batches.

    Raises:
        FeedError: It cannot be used.
    """
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
            for number in range(batches):
                yield Batch(**{kind: reader.read_next_batch() for kind, reader in readers.items()}, share_read=(number + 1) / batches)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def open_pool(settings: IngestSettings) -> Iterator[Submit]:
    """Where feeds are parsed: ``submit(function, *arguments)`` gives a future."""
    if settings.pool == "dask":
        from distributed import Client  # pyright: ignore[reportMissingImports]  (extra dask)

        with Client(settings.pool_address or None, **({} if settings.pool_address else {"n_workers": settings.workers, "threads_per_worker": 1})) as client:
            yield lambda function, *given: client.submit(function, *given, pure=False)
    elif settings.pool == "ray":
        import ray  # pyright: ignore[reportMissingImports]  (extra ray)

        with ray.init(address=settings.pool_address or None, num_cpus=None if settings.pool_address else settings.workers):
            yield lambda function, *given: ray.remote(function).remote(*given).future()
    else:  # spawn: a fork of a process with threads (DuckDB's, Prefect's) may hang
        executor = ProcessPoolExecutor(settings.workers, mp_context=multiprocessing.get_context("spawn"))
        try:
            yield executor.submit
        finally:
            executor.shutdown(wait=True, cancel_futures=True)
