"""The frequency table against a plain count."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.catalogue.frequencies import write_token_table

TITLES = {0: ["a", "a", "b"], 1: ["a", "c"], 2: ["a", "b", "d"], 3: ["a"]}


def count(path: Path, titles: dict[int, list[str]] = TITLES, kind: str = "word", **changes) -> list[dict]:
    rows = [(title, kind, token) for title, tokens in titles.items() for token in tokens]
    table = pa.table(
        {
            "title_id": pa.array([row[0] for row in rows], pa.int32()),
            "kind": pa.array([row[1] for row in rows], pa.string()),
            "token": pa.array([row[2] for row in rows], pa.string()),
        }
    )
    settings = {"thinned": ("ngram",), "minimum_titles": 2, "exponent": 0.5, "smallest": 0.1, "largest": 10.0} | changes
    written = write_token_table(table, path=path, **settings)
    found = pq.read_table(path).to_pylist()
    assert written == len(found)
    return found


def test_counts_and_order(tmp_path: Path):
    found = count(tmp_path / "tokens.parquet")
    assert [(row["token_id"], row["token"], row["term_frequency"], row["document_frequency"]) for row in found] == [(0, "a", 5, 4), (1, "b", 2, 2), (2, "c", 1, 1), (3, "d", 1, 1)]


def test_weight_is_the_formula(tmp_path: Path):
    found = count(tmp_path / "tokens.parquet")
    frequencies = np.array([4, 2, 1, 1])
    np.testing.assert_allclose([row["weight"] for row in found], (np.median(frequencies) / frequencies) ** 0.5, rtol=1e-6)


@pytest.mark.parametrize(("changes", "weights"), [({"exponent": 0.0}, [1, 1, 1, 1]), ({"smallest": 0.9, "largest": 1.1}, [0.9, 0.9, 1.1, 1.1])])
def test_weight_is_clamped_and_can_be_off(tmp_path: Path, changes: dict, weights: list[float]):
    assert [row["weight"] for row in count(tmp_path / "tokens.parquet", **changes)] == pytest.approx(weights)


def test_thinned_kinds_need_more_titles(tmp_path: Path):
    assert [row["token"] for row in count(tmp_path / "tokens.parquet", kind="ngram")] == ["a", "b"]
    assert len(count(tmp_path / "tokens.parquet", kind="word")) == 4


def test_no_occurrence_is_no_token(tmp_path: Path):
    assert count(tmp_path / "tokens.parquet", titles={}) == []


def test_a_path_with_a_quote(tmp_path: Path):
    folder = tmp_path / "it's here"
    folder.mkdir()
    assert len(count(folder / "tokens.parquet")) == 4
