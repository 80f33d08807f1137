"""Gathers the rows of a training step, and writes the changed rows back after the step."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor

from storage.tables.offloaded import Offloaded
from storage.tables.resident import Resident


@contextmanager
def update_rows(table: Resident | Offloaded, ids: Tensor) -> Iterator[tuple[Tensor, dict[str, Tensor]]]:
    """Gathers rows with their optimizer state, and writes them back at the end of the block.

    The block changes the rows and the state in place. If the block raises an exception, nothing is written.

        with update_rows(table, ids) as (rows, state):
            loss_of(rows.requires_grad_()).backward()
            with torch.no_grad():
                optimizer.update_(rows, rows.grad, state, rates, step)

    Args:
        table: Table of the rows.
        ids: Distinct rows, int64 (unique,).

    Yields:
        The rows, (unique, dim), and their optimizer state by name.
    """
    rows, state = table.gather(ids)
    yield rows, state
    table.write_back(ids, rows.detach(), state)
