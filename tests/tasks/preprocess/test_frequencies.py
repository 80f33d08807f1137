"""Frequencies per language, category and week, counted by hand on a guide of four titles."""

import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.catalogue.connection import temporary_database
from tasks.preprocess.frequencies import write_slices
from tests.worlds import Programme, publish_guide

MONDAY = datetime.datetime(2025, 3, 3, 20)
WEEK = datetime.timedelta(days=7)


@pytest.fixture
def found(tmp_path: Path) -> dict[tuple[str, str, str], tuple[int, int, int, int | None]]:
    """Maps (slice, value, token) to (term frequency, document frequency, titles, airings)."""
    rows = [
        Programme("Goal Goal", start=MONDAY),
        Programme("Goal Goal", start=MONDAY + WEEK),
        Programme("Goal Kitchen", start=MONDAY + WEEK),
        Programme("Goal Kitchen", start=MONDAY + WEEK + WEEK / 2),
        Programme("Goal new", start=MONDAY + WEEK),
        Programme("No goal", start=MONDAY),
    ]
    guide = publish_guide(tmp_path, rows)
    numbers = lambda *ids: pa.array(ids, pa.int32())  # noqa: E731
    splits, labels = ["train", "train", "next_period", "placeholder"], ["sport", "food", "sport", "sport"]
    names = ["Goal Goal", "Goal Kitchen", "Goal new", "No goal"]
    tables = {
        "titles": {"language": ["en", "en", None, "en"], "split": splits},
        "variants": {"raw_title": names, "title_id": numbers(0, 1, 2, 3)},
        "tokens": {"token_id": [0, 1], "token": ["goal", "kitchen"]},
        "entries": {"title_id": numbers(0, 0, 1, 1, 2, 3), "token_id": numbers(0, 0, 0, 1, 0, 0)},
        "labels": {"title_id": numbers(0, 1, 1, 2), "label": labels},
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    inputs = tmp_path / guide.path, tmp_path, tmp_path / "entries.parquet", tmp_path / "labels.parquet"
    with temporary_database(tmp_path) as connection:
        written = write_slices(connection, *inputs, tmp_path / "it's.parquet")
    table = pq.read_table(tmp_path / "it's.parquet").to_pylist()
    assert written == len(table)
    keys, counts = ["slice", "value", "token"], ["term_frequency", "document_frequency", "titles", "airings"]
    return {tuple(row[key] for key in keys): tuple(row[count] for count in counts) for row in table}


def test_every_slice_is_counted(found):
    assert found == {
        ("language", "en", "goal"): (3, 2, 2, None),
        ("language", "en", "kitchen"): (1, 1, 1, None),
        # the title of the next period counts, but not as a training title
        ("category", "sport", "goal"): (3, 2, 3, None),
        ("category", "sport", "kitchen"): (1, 1, 1, None),
        ("category", "food", "goal"): (1, 1, 1, None),
        ("category", "food", "kitchen"): (1, 1, 1, None),
        ("week", "2025-03-03", "goal"): (2, 1, 1, 1),
        ("week", "2025-03-10", "goal"): (3, 2, 3, 4),
        ("week", "2025-03-10", "kitchen"): (1, 1, 1, 2),
    }
