"""Table whose rows and optimizer state are in the memory of one device.

Training with any other kind of table gives the same rows.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor

from storage.tables.streaming import Section, as_section, divide_rows

BatchT = TypeVar("BatchT")


class Resident:
    """Table of embedding rows, float32 (tokens, dim), with their optimizer state by name, (tokens, …)."""

    def __init__(self, rows: Tensor, state: Mapping[str, Tensor]) -> None:
        for name, tensor in state.items():
            if len(tensor) != len(rows):
                expected = f"the table has {len(rows)}; an optimizer's state has one row per token"
                raise ValueError(f"state {name!r} has {len(tensor)} rows, {expected}")
        self.rows, self.state = rows, dict(state)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def device(self) -> torch.device:
        """Device that stores the rows."""
        return self.rows.device

    def prefetch(self, batches: Iterable[BatchT], ids: Callable[[BatchT], Tensor]) -> Iterable[BatchT]:
        """Returns the batches unchanged. An offloaded table would also prefetch their rows.

        For each batch, the caller must call ``gather`` and ``write_back`` once, with the rows ``ids(batch)``.

        Args:
            batches: Batches of any type.
            ids: Function that returns the distinct rows of a batch, int64 (unique,) on the CPU.
        """
        return batches

    def gather(self, ids: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Returns copies of distinct rows, (unique, dim), and of their optimizer state by name."""
        state = {name: tensor.index_select(0, ids) for name, tensor in self.state.items()}
        return self.rows.index_select(0, ids), state

    def write_back(self, ids: Tensor, rows: Tensor, state: Mapping[str, Tensor]) -> None:
        """Replaces the rows ``ids`` and their optimizer state."""
        if self.device.type == "cpu":  # index_copy_ takes two to four times as long
            self.rows.numpy()[ids.numpy()] = rows.numpy()
        else:
            self.rows.index_copy_(0, ids, rows)
        for name, tensor in state.items():
            self.state[name].index_copy_(0, ids, tensor)

    def tensors(self) -> dict[str, Tensor]:
        """Returns the rows and the optimizer states as tensors, by their names in a checkpoint."""
        return {"rows": self.rows, **{f"state.{name}": tensor for name, tensor in self.state.items()}}

    def sections(self) -> dict[str, Section]:
        """Returns the rows and the optimizer states as sections, by their names in a checkpoint."""
        return {name: as_section(tensor) for name, tensor in self.tensors().items()}

    def restore(self, read: Callable[[str], Any]) -> None:
        """Loads a checkpoint of a table of this size; ``read(name)[first:last]`` reads rows of a tensor."""
        for name, tensor in self.tensors().items():
            saved_tensor = read(name)
            for first, last in divide_rows(len(tensor), tensor[:1].nbytes):
                tensor[first:last] = saved_tensor[first:last]
