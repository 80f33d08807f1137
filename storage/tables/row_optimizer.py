"""Interface that tables require of an optimizer."""

from typing import Protocol

from torch import Tensor

from storage.tables.row_storage import StateInitializer


class RowOptimizer(StateInitializer, Protocol):
    """Optimizer of rows: one of tasks/optimizers, or any object with these methods."""

    @property
    def learning_rate(self) -> float:
        """Default learning rate of a step."""
        ...

    def update_(self, rows: Tensor, grad: Tensor, state: dict[str, Tensor], rate: Tensor, step: int) -> None:
        """Updates rows (unique, dim) and state in place; ``rate`` is (unique, 1), ``step`` counts from 1."""


class Frozen:
    """Optimizer of frozen rows, which have no state and are not updated."""

    learning_rate = 0.0

    def initial_state(self, rows: Tensor) -> dict[str, Tensor]:
        """Returns no state."""
        return {}

    def update_(self, rows: Tensor, grad: Tensor, state: dict[str, Tensor], rate: Tensor, step: int) -> None:
        """Raises a RuntimeError."""
        raise RuntimeError("frozen rows are not updated")
