"""Defines the interface of optimizers of embedding rows."""

from typing import Protocol

from torch import Tensor

from storage.tables.row_storage import StateInitializer


class RowOptimizer(StateInitializer, Protocol):
    """Optimizer of embedding rows. All classes in tasks/optimizers implement it."""

    @property
    def learning_rate(self) -> float:
        """Default learning rate of a step."""
        ...

    def update_(self, rows: Tensor, grad: Tensor, state: dict[str, Tensor], rate: Tensor, step: int) -> None:
        """Updates rows and their state in place.

        Args:
            rows: Distinct rows, (unique, dim).
            grad: Gradients of the rows, (unique, dim).
            state: Optimizer state of the rows by name, (unique, …).
            rate: Learning rate of each row, (unique, 1).
            step: Number of the step, counted from 1.
        """


class FrozenOptimizer:
    """Optimizer of frozen rows, which have no state and are not updated."""

    learning_rate = 0.0

    def initial_state(self, rows: Tensor) -> dict[str, Tensor]:
        """Returns an empty dictionary, because the rows have no state."""
        return {}

    def update_(self, rows: Tensor, grad: Tensor, state: dict[str, Tensor], rate: Tensor, step: int) -> None:
        """Raises a RuntimeError, because frozen rows must not change."""
        raise RuntimeError("frozen rows cannot be updated; build the embedding with freeze=False")
