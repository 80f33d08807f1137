"""The frequency table against a plain count."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.catalogue.connection import temporary_database
from tasks.tokenize import token_table
from tasks.tokenize.token_table import TokenRules, write_token_table

TITLES = {0: ["a", "a", "b"], 1: ["a", "c"], 2: ["a", "b", "d"], 3: ["a"]}


COLUMNS = ["token_id", "kind", "token", "term_frequency", "document_frequency", "weight"]


def counts(folder: Path, titles: dict[int, list[str]], kind: str = "word") -> list[Path]:
    """Makes counts in two files, of titles with even and odd numbers; each file also has zeros."""
    names = sorted({token for tokens in titles.values() for token in tokens})
    files = [folder / "even.counts", folder / "odd.counts"]
    for odd, file in enumerate(files):
        half = [tokens for title, tokens in titles.items() if title % 2 == odd]
        columns = {
            "kind": pa.array([kind] * len(names), pa.string()),
            "token": pa.array(names, pa.string()),
            "term_frequency": pa.array(
                [sum(tokens.count(name) for tokens in half) for name in names], pa.int64()
            ),
            "document_frequency": pa.array(
                [sum(name in tokens for tokens in half) for name in names], pa.int64()
            ),
        }
        pq.write_table(pa.table(columns), file)
    return files


def count(path: Path, titles: dict[int, list[str]] = TITLES, kind: str = "word", **changes) -> list[dict]:
    defaults = {
        "filtered_kinds": ("ngram",),
        "minimum_titles": 2,
        "exponent": 0.5,
        "smallest": 0.1,
        "largest": 10.0,
    }
    rules, files = TokenRules(**defaults | changes), counts(path.parent, titles, kind)
    with temporary_database(path.parent) as connection:
        tokens = write_token_table(connection, files, rules, path)
    found = pq.read_table(path).to_pylist()
    assert tokens == len(found)
    return found


def test_counts_and_order(tmp_path: Path):
    found = [list(row.values())[:-1] for row in count(tmp_path / "tokens.parquet")]
    rows = [(0, "a", 5, 4), (1, "b", 2, 2), (2, "c", 1, 1), (3, "d", 1, 1)]
    assert found == [[token_id, "word", *counts] for token_id, *counts in rows]
    assert pq.read_schema(tmp_path / "tokens.parquet").names == COLUMNS


@pytest.mark.parametrize(
    ("changes", "weights"),
    [
        ({}, [(1.5 / n) ** 0.5 for n in (4, 2, 1, 1)]),
        ({"exponent": 0.0}, [1, 1, 1, 1]),
        ({"smallest": 0.9, "largest": 1.1}, [0.9, 0.9, 1.1, 1.1]),
    ],
)
def test_weight_is_the_formula_clamped(tmp_path: Path, changes: dict, weights: list[float]):
    assert [row["weight"] for row in count(tmp_path / "tokens.parquet", **changes)] == pytest.approx(weights)


def test_thinned_kinds_need_more_titles(tmp_path: Path):
    assert [row["token"] for row in count(tmp_path / "tokens.parquet", kind="ngram")] == ["a", "b"]
    assert len(count(tmp_path / "tokens.parquet", kind="word")) == 4


def test_no_occurrence_is_no_token(tmp_path: Path):
    assert count(tmp_path / "tokens.parquet", titles={}) == []


@pytest.mark.parametrize("rows", [1, 3, 7])
def test_counts_added_up_part_by_part_are_the_same(tmp_path: Path, monkeypatch, rows: int):
    """Eight counts of four tokens, in as many parts as there may be counts, in three, and in two."""
    expected = count(tmp_path / "at_once.parquet")
    monkeypatch.setattr(token_table, "PART_ROWS", rows)
    assert count(tmp_path / "parts.parquet") == expected
    names = ["at_once.parquet", "even.counts", "odd.counts", "parts.parquet"]
    assert sorted(file.name for file in tmp_path.iterdir()) == names
