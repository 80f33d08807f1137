"""Samples on disk: round trip and errors."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random

from storage.arrays import Ragged
from tasks.linear.blocks import INDEX, SAMPLES, BlockStream, SampleBlocks, write_blocks

FEATURES = 50


def some_rows(count: int, seed: int = 0) -> tuple[csr_matrix, Ragged]:
    """Makes rows, some of them empty; every third has a positive label."""
    rows = random(count, FEATURES, density=0.1, format="csr", random_state=seed)
    rows.data[:] = np.arange(1, rows.nnz + 1)
    return rows, Ragged.from_rows([[0] if row % 3 == 0 else [] for row in range(count)])


def content(blocks: SampleBlocks) -> tuple[np.ndarray, np.ndarray]:
    """Returns all rows as a dense array, and the labels."""
    rows, labels = [], []
    for number in range(len(blocks)):
        block = blocks.read(number)
        assert block.first == sum(map(len, labels)) and block.number == number
        shape = (len(block.labels), blocks.features)
        rows.append(csr_matrix((block.values, block.ids, block.offsets), shape=shape).toarray())
        labels.append(block.labels)
    return np.concatenate(rows), np.concatenate(labels)


@pytest.mark.parametrize("block_bytes", [1, 500, 1 << 20])
@pytest.mark.parametrize("batch", [1, 7, 100])
def test_read_blocks_equal_written_ones(tmp_path: Path, block_bytes: int, batch: int) -> None:
    rows, labels = some_rows(100)
    batches = (
        (rows[begin : begin + batch], labels.between(begin, min(begin + batch, 100)))
        for begin in range(0, 100, batch)
    )
    blocks = write_blocks(tmp_path / "samples", batches, FEATURES, block_bytes)
    found, signs = content(SampleBlocks(tmp_path / "samples"))
    assert np.array_equal(found, rows.toarray().astype(np.float32))
    assert signs.tolist() == [1 if row % 3 == 0 else -1 for row in range(100)]
    assert blocks.samples == 100 and blocks.values == rows.nnz
    assert len(blocks) == {1: 100, 1 << 20: 1}.get(block_bytes, len(blocks))
    if block_bytes == 500:
        assert 8 < len(blocks) < 14 and blocks.largest <= 504  # 100 rows of 5 values: 4.5 kB


def test_an_id_twice_in_a_row_is_summed(tmp_path: Path) -> None:
    rows = csr_matrix((np.array([1.0, 2, 4]), np.array([3, 3, 1]), np.array([0, 3])), shape=(1, FEATURES))
    blocks = write_blocks(tmp_path / "samples", [(rows, Ragged.from_rows([[]]))], FEATURES)
    assert (blocks.read(0).ids.tolist(), blocks.read(0).values.tolist()) == ([1, 3], [4, 3])
    assert rows.nnz == 3  # the caller's is left as it was


@pytest.mark.parametrize(
    ("value", "feature", "labels", "message"),
    [
        (np.nan, 0, [[0]], "row 0 holds nan for feature 0; expected a finite float32"),
        (1.0, FEATURES, [[0]], f"row 0 holds feature {FEATURES}; there are features 0 to {FEATURES - 1}"),
        (1.0, 0, [[1]], "row 0 holds label 1; there are labels 0 to 0"),
        (1.0, 0, [[0], [0]], "2 rows of labels for 1 samples"),
    ],
)
def test_bad_samples_leave_the_previous_file(
    tmp_path: Path, value: float, feature: int, labels: list[list[int]], message: str
) -> None:
    write_blocks(tmp_path / "samples", [some_rows(10)], FEATURES)

    def batches() -> Iterator[tuple[csr_matrix, Ragged]]:
        yield some_rows(100)
        yield csr_matrix(([value], ([0], [feature])), shape=(1, FEATURES + 1)), Ragged.from_rows(labels)

    with pytest.raises(ValueError, match=message):
        write_blocks(tmp_path / "samples", batches(), FEATURES, block_bytes=100)
    assert SampleBlocks(tmp_path / "samples").samples == 10
    assert [path.name for path in tmp_path.iterdir()] == ["samples"]


@pytest.mark.parametrize("batches", [[], [some_rows(0)]])
def test_no_samples_are_an_error(tmp_path: Path, batches: list[tuple[csr_matrix, Ragged]]) -> None:
    with pytest.raises(ValueError, match=r"no samples to write to .*samples; expected at least one row"):
        write_blocks(tmp_path / "samples", batches, FEATURES)


def test_a_folder_of_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(ValueError, match="contains other files, which would be lost"):
        write_blocks(tmp_path, [some_rows(10)], FEATURES)
    assert (tmp_path / "thesis.txt").exists()


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    blocks = write_blocks(tmp_path, [some_rows(100)], FEATURES, 500)
    whole = blocks.file.read_bytes()
    blocks.file.write_bytes(whole[:-8])
    with pytest.raises(
        ValueError, match=f"has {len(whole) - 8} bytes, expected {len(whole)}: the copy is incomplete"
    ):
        SampleBlocks(tmp_path)
    with pytest.raises(ValueError, match=f"block {len(blocks) - 1} of .* is damaged"):
        blocks.read(len(blocks) - 1)
    blocks.read(0)


def test_a_changed_byte_is_refused(tmp_path: Path) -> None:
    blocks = write_blocks(tmp_path, [some_rows(100)], FEATURES, 500)
    changed = bytearray(blocks.file.read_bytes())
    changed[3] ^= 64  # a feature id far beyond the weights
    (tmp_path / SAMPLES).write_bytes(changed)
    with pytest.raises(ValueError, match=r"block 0 of .* is damaged"):
        SampleBlocks(tmp_path).read(0)


def test_a_folder_without_samples_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"contains no {INDEX}; write the samples with write_blocks"):
        SampleBlocks(tmp_path)


def test_the_index_can_be_read_by_other_programs(tmp_path: Path) -> None:
    blocks = write_blocks(tmp_path, [some_rows(100)], FEATURES, 500)
    index = json.loads((tmp_path / INDEX).read_text(encoding="utf-8"))
    assert index["features"] == FEATURES and len(index["blocks"]) == len(blocks)


def test_the_stream_restarts_after_the_last_block(tmp_path: Path) -> None:
    blocks = write_blocks(tmp_path, [some_rows(30)], FEATURES, 500)
    with BlockStream(blocks) as stream:
        numbers = [next(stream).number for _ in range(2 * len(blocks) + 1)]
    assert numbers == [*range(len(blocks)), *range(len(blocks)), 0]
