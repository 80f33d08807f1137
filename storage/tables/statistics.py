"""Counts rows, cache hits, transferred bytes and waits of an offloaded table."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from storage.tables.planner import CachePlan
from storage.tables.prefetch import ReadyBatch

BatchT = TypeVar("BatchT")


@dataclass
class Statistics:
    """Total counts since the table was created.

    Attributes:
        record_bytes: Size of a record in bytes.
        hits: Number of rows that were in the cache when their batch was planned.
        wait_seconds: Time that the caller waited for rows of the next batch, without waits of GPU streams.
    """

    record_bytes: int
    batches: int = 0
    rows: int = 0
    hits: int = 0
    bytes_to_device: int = 0
    bytes_to_host: int = 0
    wait_seconds: float = 0.0
    _previous_totals: dict[str, float] = field(default_factory=dict)

    def totals(self) -> dict[str, float]:
        """Returns all totals by name."""
        names = "batches", "rows", "hits", "bytes_to_device", "bytes_to_host", "wait_seconds"
        return {name: getattr(self, name) for name in names}

    def last_batch(self) -> dict[str, float]:
        """Returns the counts of the last batch by name, and its ``hit_rate``; {} if there was no batch."""
        if not self._previous_totals:
            return {}
        counts = {name: total - self._previous_totals[name] for name, total in self.totals().items()}
        return counts | {"hit_rate": counts["hits"] / max(1, counts["rows"])}

    def prometheus(self, prefix: str = "offloaded_table") -> str:
        """Returns the totals in the text format of Prometheus."""
        lines = [
            line
            for name, total in self.totals().items()
            for line in (f"# TYPE {prefix}_{name}_total counter", f"{prefix}_{name}_total {total}")
        ]
        return "\n".join(lines) + "\n"

    def count_batches(
        self, batches: Iterable[tuple[BatchT, ReadyBatch]]
    ) -> Iterator[tuple[BatchT, ReadyBatch]]:
        """Iterates over prefetched batches, and counts their transfers and the time waited for them."""
        iterator: Any = iter(batches)
        while True:
            start = time.perf_counter()
            if (item := next(iterator, None)) is None:
                return
            self.begin_batch(item[1].plan)
            self.wait_seconds += time.perf_counter() - start
            yield item

    def begin_batch(self, plan: CachePlan) -> None:
        """Adds the rows and transfers of the plan of a batch to the totals."""
        self._previous_totals = self.totals()
        self.batches += 1
        self.rows += len(plan.ids)
        self.hits += len(plan.ids) - len(plan.enter_ids) - len(plan.direct)
        self.bytes_to_device += len(plan.enter_ids) * self.record_bytes
        self.bytes_to_host += len(plan.leave_ids) * self.record_bytes
