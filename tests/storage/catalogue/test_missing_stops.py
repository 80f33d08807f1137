"""A missing stop is the next start on the channel, in any order and with any batches."""

import datetime
import random
from pathlib import Path

import pytest

from storage.catalogue.connection import Catalogue
from storage.catalogue.ledger import feed_writer
from tests.storage.catalogue.stored import HOUR, READ_AT, airing, batch

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
        start = 0
        for number in range(chance.randrange(30)):
            start += chance.choice((0, 1, 1, 2, 24, 25, 40))
            note = chance.choice((None, "missing", "unreadable"))
            row = airing(channel, start, f"{channel} {number}", 3, stop_note=note)
            rows.append(row | {"stop": None} if note else row)
    return rows


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
            with feed_writer(
                catalogue, source=f"s{seed}", content_digest="d", size=1, read_at=READ_AT
            ) as draft:
                while rows:
                    cut = chance.randint(0, 12)
                    draft.add_programmes(batch(rows[:cut]))
                    rows = rows[cut:]
        assert dict(catalogue.connection.execute("SELECT title, stop FROM programmes").fetchall()) == expected
