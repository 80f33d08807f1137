"""Rows to new ids: appended, permuted, gone."""

import pytest
import torch

from storage.tables.remap import remap_rows

OLD = {"rows": torch.arange(8.0).reshape(4, 2), "state.square": torch.tensor([[1.0], [2.0], [3.0], [4.0]]), "touched": torch.tensor([True, False, True, True])}


def fresh(tokens: int) -> dict[str, torch.Tensor]:
    return {"rows": torch.full((tokens, 2), -1.0), "state.square": torch.zeros(tokens, 1), "touched": torch.zeros(tokens, dtype=torch.bool)}


def test_a_table_that_has_grown_begins_with_the_old_one():
    start = fresh(6)
    moved = remap_rows(OLD, torch.arange(4), start)
    for name, tensor in moved.items():
        assert torch.equal(tensor[:4], OLD[name]) and torch.equal(tensor[4:], start[name][4:]), name
    assert torch.equal(start["rows"], torch.full((6, 2), -1.0))  # left as it was


def test_a_compaction_moves_every_row_to_its_token():
    moved = remap_rows(OLD, torch.tensor([2, -1, 0, 4]), fresh(5))
    assert moved["rows"].tolist() == [[4, 5], [-1, -1], [0, 1], [-1, -1], [6, 7]]
    assert moved["state.square"].flatten().tolist() == [3, 0, 1, 0, 4]
    assert moved["touched"].tolist() == [True, False, True, False, True]


def test_there_and_back_is_the_same():
    order = torch.randperm(4, generator=torch.Generator().manual_seed(0))
    there = remap_rows(OLD, order, fresh(4))
    back = remap_rows(there, torch.argsort(order), fresh(4))
    assert all(torch.equal(back[name], OLD[name]) for name in OLD)


def test_nothing_known_is_a_fresh_table():
    assert all(torch.equal(tensor, fresh(3)[name]) for name, tensor in remap_rows(OLD, torch.full((4,), -1), fresh(3)).items())


@pytest.mark.parametrize(
    ("new_ids", "start", "message"),
    [
        (torch.tensor([0, 1, 1, 2]), fresh(4), "distinct"),
        (torch.arange(3), fresh(4), r"\(4, 2\), expected \(3, 2\)"),
        (torch.arange(4), {"rows": torch.zeros(4, 2)}, "another rule"),
        (torch.arange(4), fresh(4) | {"rows": torch.zeros(4, 3)}, r"expected \(4, 3\)"),
    ],
)
def test_what_does_not_fit_is_refused(new_ids: torch.Tensor, start: dict[str, torch.Tensor], message: str):
    with pytest.raises(ValueError, match=message):
        remap_rows(OLD, new_ids, start)
