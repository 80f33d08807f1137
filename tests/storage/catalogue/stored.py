"""Small readings for tests of the catalogue."""

import datetime
from contextlib import closing
from pathlib import Path

import pyarrow as pa

from storage.catalogue.connection import FILE, Catalogue, connect, migrate, read_migrations
from storage.catalogue.feeds import Counts
from storage.catalogue.ledger import reading
from storage.catalogue.rows import CHANNELS, PROGRAMMES, REJECTS

HOUR = datetime.timedelta(hours=1)


NOON = datetime.datetime(2025, 3, 1, 12)


READ_AT = datetime.datetime(2025, 3, 2, 5, 0, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))


def migrate_home(home: Path, count: int) -> None:
    """Makes a catalogue as it was after the first ``count`` migrations."""
    with closing(connect(home / FILE)) as connection:
        migrate(connection, read_migrations()[:count], home / FILE)


def programmes(*rows: tuple[str, int, str, str]) -> pa.RecordBatch:
    """Of (channel, hour after noon, title, category)."""
    content = [
        {
            "channel": channel,
            "start": NOON + hour * HOUR,
            "stop": NOON + (hour + 1) * HOUR,
            "title": title,
            "categories": [category],
            "episode_numbers": [],
            "episode_systems": [],
        }
        for channel, hour, title, category in rows
    ]
    return pa.RecordBatch.from_pylist(content, schema=PROGRAMMES)


def store(
    catalogue: Catalogue, source: str, digest: str, *batches: pa.RecordBatch, rejects: int = 0
) -> Counts:
    with reading(catalogue, source=source, content_digest=digest, size=10, read_at=READ_AT) as draft:
        for batch in batches:
            draft.add_programmes(batch)
        draft.add_rejects(
            pa.RecordBatch.from_pylist(
                [{"line": i, "reason": "bad_start", "excerpt": "<p>"} for i in range(rejects)], schema=REJECTS
            )
        )
        draft.add_channels(
            pa.RecordBatch.from_pylist(
                [
                    {"channel": "b", "name": name, "names": [name], "urls": []}
                    for name in (f"B of {digest}", "B again")
                ],
                schema=CHANNELS,
            )
        )
        return draft.finish()
