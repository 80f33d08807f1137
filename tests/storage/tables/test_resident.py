"""The resident table: gather, write_back and checkpoints."""

import pytest
import torch

from storage.tables import Resident


def table() -> Resident:
    rows = torch.arange(12, dtype=torch.float32).view(4, 3)
    return Resident(rows, {"sum": torch.arange(4, dtype=torch.float32).unsqueeze(1), "first": rows * 10})


def test_gather_and_write_back():
    made, ids = table(), torch.tensor([3, 1])
    rows, state = made.gather(ids)
    assert rows.tolist() == [[9, 10, 11], [3, 4, 5]] and state["sum"].tolist() == [[3], [1]]
    rows += 100
    state["first"].zero_()
    assert made.rows[3].tolist() == [9, 10, 11]  # a copy: nothing moves before it is written back
    made.write_back(ids, rows, state)
    assert made.rows.tolist() == [[0, 1, 2], [103, 104, 105], [6, 7, 8], [109, 110, 111]]
    assert made.state["first"].tolist() == [[0, 10, 20], [0, 0, 0], [60, 70, 80], [0, 0, 0]]
    assert made.state["sum"].tolist() == [[0], [1], [2], [3]]


def test_no_ids_change_nothing():
    made, ids = table(), torch.zeros(0, dtype=torch.int64)
    rows, state = made.gather(ids)
    assert rows.shape == (0, 3)
    made.write_back(ids, rows, state)
    assert torch.equal(made.rows, table().rows)


def test_tensors_restore_the_complete_table():
    made = table()
    again = Resident(torch.zeros_like(made.rows), {name: t.clone() * 0 for name, t in made.state.items()})
    again.restore(made.tensors().__getitem__)
    assert set(made.tensors()) == {"rows", "state.sum", "state.first"}
    assert torch.equal(again.rows, made.rows) and all(
        torch.equal(again.state[name], made.state[name]) for name in made.state
    )
    assert len(again) == 4 and again.device == torch.device("cpu")


def test_state_of_another_length_is_refused():
    with pytest.raises(
        ValueError,
        match="state 'sum' has 3 rows, the table has 4; an optimizer's state has one row per token",
    ):
        Resident(torch.zeros(4, 2), {"sum": torch.zeros(3, 1)})
