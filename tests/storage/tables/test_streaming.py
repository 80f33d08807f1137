"""A safetensors file that is written in pieces, completely or not at all."""

import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from storage.tables.streaming import (
    MAX_PIECE_BYTES,
    Section,
    as_section,
    divide_rows,
    random_rows,
    write_safetensors,
)


def test_the_file_equals_that_of_safetensors(tmp_path: Path):
    tensors = {
        "rows": torch.randn(70, 3),
        "state.sum": torch.randn(70, 1),
        "touched": torch.rand(70) > 0.5,
        "none": torch.zeros(0, 4),
        "ids": torch.arange(5),
    }
    save_file(tensors, tmp_path / "theirs.safetensors", metadata={"history": "[1]"})
    write_safetensors(
        tmp_path / "ours.safetensors",
        {name: as_section(tensor) for name, tensor in tensors.items()},
        {"history": "[1]"},
    )
    loaded = load_file(tmp_path / "ours.safetensors")
    assert set(loaded) == set(tensors) and all(
        torch.equal(loaded[name], tensor) for name, tensor in tensors.items()
    )
    assert (tmp_path / "ours.safetensors").read_bytes() == (tmp_path / "theirs.safetensors").read_bytes()


def test_a_tensor_is_written_in_pieces(tmp_path: Path):
    values = torch.randn(10, 4)
    part = Section(torch.float32, (10, 4), lambda: (values[start : start + 3] for start in range(0, 10, 3)))
    write_safetensors(tmp_path / "rows.safetensors", {"rows": part}, {})
    assert torch.equal(load_file(tmp_path / "rows.safetensors")["rows"], values)


def test_a_wrong_number_of_rows_leaves_the_old_file(tmp_path: Path):
    file = tmp_path / "rows.safetensors"
    write_safetensors(file, {"rows": as_section(torch.ones(4, 2))}, {})
    with pytest.raises(ValueError, match=re.escape("rows: pieces have 24 bytes, shape (4, 2) takes 32")):
        write_safetensors(file, {"rows": Section(torch.float32, (4, 2), lambda: [torch.zeros(3, 2)])}, {})
    assert torch.equal(load_file(file)["rows"], torch.ones(4, 2))
    assert list(tmp_path.iterdir()) == [file]  # the half of a new one would hold the last room of a full disk


def test_spans_cover_all_rows_in_order():
    assert list(divide_rows(0, 512)) == []
    assert list(divide_rows(5, MAX_PIECE_BYTES)) == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
    assert list(divide_rows(5, MAX_PIECE_BYTES // 2)) == [(0, 2), (2, 4), (4, 5)]


@pytest.mark.parametrize("dim", [1, 3, 100, 128])
@pytest.mark.parametrize("rows", [0, 3, 16, 1000, 1007, 1039])
def test_rows_drawn_in_pieces_are_those_drawn_at_once(rows: int, dim: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("storage.tables.streaming.MAX_PIECE_BYTES", 4096)
    at_once, in_pieces = (torch.Generator().manual_seed(3) for _ in range(2))
    expected = torch.empty(rows, dim).normal_(generator=at_once).mul_(0.1)
    section = random_rows(rows, dim, 0.1, in_pieces)
    assert torch.equal(section.tensor(), expected)
    assert torch.equal(torch.randn(9, generator=in_pieces), torch.randn(9, generator=at_once))
    assert torch.equal(section.tensor(), expected)
    assert all(piece.nbytes <= 4096 + 31 * dim * 4 for piece in section.pieces())
