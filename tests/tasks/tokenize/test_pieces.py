"""Long Parquet files are read in batches, in order and in bounded memory."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.formats.vocabulary import batches_of, pieces_of, read_piece


def test_batches_are_the_rows_in_order(tmp_path: Path):
    pq.write_table(
        pa.table({"number": range(10), "other": ["x"] * 10}), tmp_path / "a.parquet", row_group_size=4
    )
    batches = list(batches_of(tmp_path / "a.parquet", ["number"], rows=3))
    assert [number for batch in batches for number in batch["number"].to_pylist()] == list(range(10))
    assert all(batch.num_rows <= 3 and batch.schema.names == ["number"] for batch in batches)
    assert [
        read_piece(tmp_path / "a.parquet", piece).num_rows for piece in pieces_of(tmp_path / "a.parquet")
    ] == [4, 4, 2]


def test_memory_of_batches_is_released(tmp_path: Path):
    rows, parts = 1 << 15, 40
    noise = pa.table({"noise": np.random.default_rng(1).random(rows * parts)})
    pq.write_table(noise, tmp_path / "noise.parquet", row_group_size=rows, compression="none")
    size = noise.nbytes
    del noise
    before = pa.total_allocated_bytes()
    held = [pa.total_allocated_bytes() - before for _ in batches_of(tmp_path / "noise.parquet", rows=rows)]
    assert len(held) == parts and max(held) < size / 4
