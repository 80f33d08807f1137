"""What one step may move: some rows of a table, or all of a dense parameter."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass
class Part:
    """What a step may move of one table or parameter.

    Attributes:
        rows: (unique, dim), moved in place; no leaf that requires a gradient.
        grad: (unique, dim), ours to change.
        state: Of those rows, changed in place.
        weights: (unique, 1): factor on each row's step; None is one.
        tokens: Rows that the whole table has; 0 where these are all.
    """

    rows: Tensor
    grad: Tensor
    state: dict[str, Tensor]
    weights: Tensor | None = None
    tokens: int = 0

    @property
    def whole(self) -> int:
        """Rows of the table that these are some or all of."""
        return self.tokens or len(self.rows)
