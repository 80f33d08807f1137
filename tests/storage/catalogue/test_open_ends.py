"""A missing stop is the next start on the channel, however a feed is ordered and cut into batches."""

import datetime
import random
from pathlib import Path

import pyarrow as pa
import pytest

from storage.catalogue.connection import Catalogue
from storage.catalogue.ledger import reading
from storage.catalogue.open_ends import OpenEnds
from storage.catalogue.rows import PROGRAMMES

NOON = datetime.datetime(2025, 3, 1, 12)
NOW = datetime.datetime(2025, 3, 1, tzinfo=datetime.UTC)
HOUR = datetime.timedelta(hours=1)
ORDERS = {
    "in_order": lambda row: row["start"],
    "channel_by_channel": lambda row: (row["channel"], row["start"]),
    "backwards": lambda row: -row["start"].timestamp(),
    "no_order": None,
}


def schedule(chance: random.Random, seed: int) -> list[dict[str, object]]:
    """Three channels, the odd double start, gaps of up to 40 hours, two stops in three missing or
    unreadable."""
    rows = []
    for channel in (f"{name}{seed}" for name in "abc"):
        start = NOON
        for number in range(chance.randrange(30)):
            start += HOUR * chance.choice((0, 1, 1, 2, 24, 25, 40))
            note = chance.choice((None, "missing", "unreadable"))
            rows.append(
                {
                    "channel": channel,
                    "start": start,
                    "stop": None if note else start + HOUR * 3,
                    "stop_note": note,
                    "title": f"{channel} {number}",
                }
            )
    return [{**row, "categories": [], "episode_numbers": [], "episode_systems": []} for row in rows]


@pytest.mark.parametrize("order", ORDERS)
def test_stops_are_the_next_starts(tmp_path: Path, order: str) -> None:
    expected = {}
    with Catalogue.open(tmp_path) as catalogue:
        for seed in range(4):
            chance = random.Random(seed)
            rows = schedule(chance, seed)
            by = ORDERS[order]
            rows = sorted(rows, key=by) if by else chance.sample(rows, len(rows))
            starts: dict[object, list[datetime.datetime]] = {}
            for row in sorted(rows, key=lambda row: row["start"]):  # type: ignore[arg-type, return-value]
                starts.setdefault(row["channel"], []).append(row["start"])  # type: ignore[arg-type]
            for row in rows:
                later = [start for start in starts[row["channel"]] if start > row["start"]]  # type: ignore[operator]
                within = later and later[0] - row["start"] <= 24 * HOUR  # type: ignore[operator]
                expected[row["title"]] = row["stop"] or (later[0] if within else None)
            with reading(catalogue, source=f"s{seed}", content_digest="d", size=1, read_at=NOW) as draft:
                while rows:
                    cut = chance.randint(0, 12)
                    draft.add_programmes(pa.RecordBatch.from_pylist(rows[:cut], schema=PROGRAMMES))
                    rows = rows[cut:]
        assert dict(catalogue.connection.execute("SELECT title, stop FROM programmes").fetchall()) == expected


def test_a_feed_in_order_needs_one_look_a_batch() -> None:
    open_ends = OpenEnds()
    for first in range(0, 40, 10):
        rows = [
            {"channel": "a", "start": NOON + HOUR * hour, "stop_note": "missing", "title": "t"}
            for hour in range(first, first + 10)
        ]
        filled = open_ends.fill(pa.RecordBatch.from_pylist(rows, schema=PROGRAMMES))
        assert filled.column("stop").to_pylist() == [
            NOON + HOUR * hour for hour in range(first + 1, first + 10)
        ] + [None]
    assert open_ends.ordered and len(open_ends.bounds) == 3 and open_ends.count == 40
    open_ends.fill(pa.RecordBatch.from_pylist(rows, schema=PROGRAMMES))
    assert not open_ends.ordered
