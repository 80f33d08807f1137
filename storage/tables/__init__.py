"""Where embedding rows and their optimizer state live, a family: a table answers where, a rule how a row moves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from torch import Tensor

from storage.tables.embedding import OffloadedEmbedding
from storage.tables.offloaded import Offloaded
from storage.tables.resident import Resident
from storage.tables.streaming import Part

__all__ = ["Offloaded", "OffloadedEmbedding", "Resident", "Table"]

B = TypeVar("B")


class Table(Protocol):
    """What a training step asks of a table; every one equals Resident bit for bit."""

    def __len__(self) -> int: ...

    def ahead(self, batches: Iterable[B], ids: Callable[[B], Tensor]) -> Iterable[B]:
        """The batches in their order; the rows of those to come are brought while a step runs.

        Args:
            batches: Of one epoch. Whoever iterates calls ``gather`` and ``write_back`` once a batch, with its ids.
            ids: int64 (unique,) on the CPU: the distinct rows of a batch.
        """
        ...

    def gather(self, ids: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Copies of rows (unique, dim), and of their state by name, on the device; ``ids`` distinct."""
        ...

    def write_back(self, ids: Tensor, rows: Tensor, state: Mapping[str, Tensor]) -> None:
        """Puts rows and state where ``gather(ids)`` took them from."""
        ...

    def parts(self) -> dict[str, Part]:
        """Everything a checkpoint keeps, by name; what is stored narrower as float32."""
        ...

    def restore(self, read: Callable[[str], Any]) -> None:
        """Takes everything from a checkpoint of the same shapes; ``read(name)[start:stop]`` are its rows."""
        ...
