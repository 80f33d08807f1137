"""Stores small readings for tests of the catalogue."""

import datetime
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa

from storage.catalogue.connection import CATALOGUE_FILE, Catalogue, connect, migrate, read_migrations
from storage.catalogue.feeds import Counts
from storage.catalogue.ledger import feed_writer
from storage.catalogue.rows import CHANNELS, DETAILS, PROGRAMMES, REJECTS

HOUR = datetime.timedelta(hours=1)
NOON = datetime.datetime(2025, 3, 1, 12)
READ_AT = datetime.datetime(2025, 3, 2, 5, 0, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))
EMPTY = {"categories": [], "episode_numbers": [], "episode_systems": []}


def migrate_home(home: Path, count: int) -> None:
    """Creates a catalogue in the state after the first ``count`` migrations."""
    with closing(connect(home / CATALOGUE_FILE)) as connection:
        migrate(connection, read_migrations()[:count], home / CATALOGUE_FILE)


def day(number: int) -> datetime.datetime:
    """Returns a day of February, on which a grab is made."""
    return datetime.datetime(2025, 2, number, tzinfo=datetime.UTC)


def airing(channel: str, hour: float, title: str, hours: float = 1, **values: object) -> dict[str, object]:
    """Returns a row of PROGRAMMES that starts ``hour`` hours after noon."""
    times = {"start": NOON + hour * HOUR, "stop": NOON + (hour + hours) * HOUR}
    return EMPTY | {"channel": channel, "title": title, **times} | values


def batch(rows: Sequence[Mapping[str, object]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=PROGRAMMES)


def programmes(*rows: tuple[str, int, str, str]) -> pa.RecordBatch:
    """Makes programmes of (channel, hour after noon, title, category)."""
    return batch([airing(*place, categories=[category]) for *place, category in rows])


def read_rows(
    catalogue: Catalogue,
    grabbed: int,
    rows: Sequence[Mapping[str, Any]],
    source: str = "s",
    descriptions: Mapping[int, str] | None = None,
    names: Mapping[str, list[str]] | None = None,
) -> Counts:
    """Reads a grab of a day: descriptions by row, and names by channel."""
    details = [{"row": row, "description": text} for row, text in (descriptions or {}).items()]
    content = {"content_digest": repr((rows, descriptions)), "size": 1}
    with feed_writer(catalogue, source=source, **content, read_at=day(28), grabbed_at=day(grabbed)) as draft:
        draft.add_programmes(batch(rows), pa.RecordBatch.from_pylist(details, schema=DETAILS))
        listed = [
            {"channel": channel, "name": own[0], "names": own, "urls": []}
            for channel, own in (names or {}).items()
        ]
        draft.add_channels(pa.RecordBatch.from_pylist(listed, schema=CHANNELS))
        return draft.finish()


def store(
    catalogue: Catalogue, source: str, digest: str, *batches: pa.RecordBatch, rejects: int = 0
) -> Counts:
    """Reads batches, rejects, and two descriptions of the channel b."""
    rejected = [{"line": i, "reason": "bad_start", "excerpt": "<p>"} for i in range(rejects)]
    channels = [
        {"channel": "b", "name": name, "names": [name], "urls": []} for name in (f"B of {digest}", "B again")
    ]
    with feed_writer(catalogue, source=source, content_digest=digest, size=10, read_at=READ_AT) as draft:
        for rows in batches:
            draft.add_programmes(rows)
        draft.add_rejects(pa.RecordBatch.from_pylist(rejected, schema=REJECTS))
        draft.add_channels(pa.RecordBatch.from_pylist(channels, schema=CHANNELS))
        return draft.finish()
