"""Ids of tokens by joins on disk."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.catalogue.token_ids import token_remap


def table(path: Path, tokens: list[tuple[str, str]]) -> Path:
    columns = {"token_id": pa.array(range(len(tokens)), pa.int64())}
    columns |= {name: pa.array([token[part] for token in tokens], pa.string()) for part, name in enumerate(("kind", "token"))}
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([("word", "maus"), ("ngram", "maus"), ("word", "gone"), ("word", "die")], [("word", "die"), ("word", "maus"), ("ngram", "maus")], [1, 2, -1, 0]),
        ([], [("word", "die")], []),
        ([("word", "die"), ("word", "maus")], [], [-1, -1]),
    ],
)
def test_token_remap_goes_by_kind_and_text(tmp_path: Path, before: list[tuple[str, str]], after: list[tuple[str, str]], expected: list[int]) -> None:
    remap = token_remap(table(tmp_path / "before.parquet", before), table(tmp_path / "after.parquet", after), tmp_path)
    assert remap.dtype == np.int64 and remap.tolist() == expected
    assert sorted(file.name for file in tmp_path.iterdir()) == ["after.parquet", "before.parquet"]


def test_many_tokens_are_found_again(tmp_path: Path) -> None:
    order = np.random.default_rng(3).permutation(200_000)
    tokens = [("word", f"w{number}") for number in range(len(order))]
    remap = token_remap(table(tmp_path / "before.parquet", tokens), table(tmp_path / "after.parquet", [tokens[row] for row in order]), tmp_path)
    np.testing.assert_array_equal(order[remap], np.arange(len(order)))
