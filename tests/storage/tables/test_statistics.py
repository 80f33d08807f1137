"""Statistics of a table compared with the transferred rows."""

import torch

from storage.tables import Offloaded, random_rows
from tasks.optimizers import SGD


def test_counts_are_those_of_the_transfers(world, monkeypatch):
    table = world.offloaded(SGD(), cache_rows=10)
    moved = {"read": 0, "write": 0}
    for name in moved:
        original = getattr(table.storage, name)

        def count(records, *others, name=name, original=original):
            moved[name] += len(records) * table.storage.records.width
            return original(records, *others)

        monkeypatch.setattr(table.storage, name, count)
    batches, seen = world.schedule(30, seed=4), []
    assert table.statistics.last_batch() == {}

    def between(step: int) -> None:
        seen.append(table.statistics.last_batch())

    world.drive(table, SGD(), batches, between=between)
    totals = table.statistics.totals()
    assert totals["batches"] == 30 and totals["rows"] == sum(map(len, batches))
    assert totals["bytes_to_device"] == moved["read"] > 0 and totals["bytes_to_host"] == moved["write"] > 0
    assert totals["wait_seconds"] > 0 and 0 < totals["hits"] < totals["rows"]
    assert [batch["rows"] for batch in seen] == [len(ids) for ids in batches]
    assert sum(batch["hits"] for batch in seen) == totals["hits"]
    assert all(batch["hit_rate"] == batch["hits"] / max(1, batch["rows"]) for batch in seen)


def test_hits_outside_prefetch_are_the_rows_in_the_cache():
    table = Offloaded(random_rows(60, 5, 1.0, 1), SGD(), cache_rows=10)
    ids = torch.arange(30)
    table.gather(ids)
    assert table.storage.hot == 9
    last = table.statistics.last_batch()
    assert (last["rows"], last["hits"], last["hit_rate"]) == (30, 9, 0.3)
    assert last["bytes_to_device"] == 21 * table.storage.records.width and last["bytes_to_host"] == 0


def test_totals_are_counters_of_prometheus():
    table = Offloaded(random_rows(60, 5, 1.0, 1), SGD(), cache_rows=10)
    table.gather(torch.arange(12))
    lines = table.statistics.prometheus().splitlines()
    assert "# TYPE offloaded_table_rows_total counter" in lines and "offloaded_table_rows_total 12" in lines
    assert len(lines) == 2 * len(table.statistics.totals())
