"""Rows and state in the memory of one device: the plain table that every other one must equal bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor

from storage.tables.streaming import Part, whole

B = TypeVar("B")


class Resident:
    """Embedding rows with their optimizer state, all on one device.

    Args:
        rows: float32, shape (tokens, dim).
        state: Name to tensor, first axis tokens (a rule's ``initial_state``).
    """

    def __init__(self, rows: Tensor, state: Mapping[str, Tensor]) -> None:
        for name, tensor in state.items():
            if len(tensor) != len(rows):
                raise ValueError(f"state {name!r} has {len(tensor)} rows, the table has {len(rows)}; a rule's state has one row a token")
        self.rows = rows
        self.state = dict(state)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def device(self) -> torch.device:
        """Where the rows are."""
        return self.rows.device

    def ahead(self, batches: Iterable[B], ids: Callable[[B], Tensor]) -> Iterable[B]:
        """The batches as they come: every row is here already."""
        return batches

    def gather(self, ids: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Copies rows and their state.

        Args:
            ids: int64, distinct, shape (unique,).

        Returns:
            Rows (unique, dim), and the state by name.
        """
        return self.rows.index_select(0, ids), {name: tensor.index_select(0, ids) for name, tensor in self.state.items()}

    def write_back(self, ids: Tensor, rows: Tensor, state: Mapping[str, Tensor]) -> None:
        """Puts rows and state back where ``gather(ids)`` took them from."""
        if self.device.type == "cpu":
            self.rows.numpy()[ids.numpy()] = rows.numpy()  # whole rows at once; index_copy_ takes two to four times as long
        else:
            self.rows.index_copy_(0, ids, rows)
        for name, tensor in state.items():
            self.state[name].index_copy_(0, ids, tensor)

    def tensors(self) -> dict[str, Tensor]:
        """Everything a checkpoint keeps, by name."""
        return {"rows": self.rows, **{f"state.{name}": tensor for name, tensor in self.state.items()}}

    def parts(self) -> dict[str, Part]:
        """The same, for a file that is written piece by piece."""
        return {name: whole(tensor) for name, tensor in self.tensors().items()}

    def restore(self, read: Callable[[str], Any]) -> None:
        """Takes everything from a checkpoint of the same shapes.

        Args:
            read: Name to what gives rows by slicing (safetensors' ``get_slice``).
        """
        for name, tensor in self.tensors().items():
            tensor.copy_(read(name)[:])

    @staticmethod
    def from_tensors(tensors: Mapping[str, Tensor]) -> Resident:
        """The table that ``tensors()`` described."""
        state = {name.removeprefix("state."): tensor for name, tensor in tensors.items() if name.startswith("state.")}
        return Resident(tensors["rows"], state)
