"""Kinds of the programmes of an evening: by categories, episode numbers and the titles of a model."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.formats.programme_kinds import KIND_COLUMNS
from tasks.tonight.kinds import select_kinds
from tasks.tonight.programmes import group_programmes
from tests.tasks.tonight.evenings import coming

SHOWS = group_programmes(
    coming(
        ("20:00", "21:00", "One", "Stated", "", "", {"categories": ["Movie"]}),
        ("20:00", "21:00", "Two", "Numbered", "", "2.3.", {"categories": []}),
        ("20:00", "21:00", "Three", "Predicted", "", "", {"categories": []}),
        ("21:00", "22:00", "Three", "Predicted", "Pilot", "1.0.", {"categories": []}),
        ("20:00", "21:00", "Four", "Nothing", "", "", {"categories": []}),
    )
)


def selected(folder, *kinds):
    return {
        (show.show_key, programme.episode)
        for show in select_kinds(SHOWS, kinds, folder)
        for programme in show.programmes
    }


@pytest.fixture
def model(tmp_path):
    values = [["film"]], [[0.98]], [["predicted"]]
    columns = [pa.array(value, field.type) for value, field in zip(values, KIND_COLUMNS, strict=True)]
    columns = dict(zip(KIND_COLUMNS.names, columns, strict=True))
    pq.write_table(pa.table({"show_key": ["predicted"], **columns}), tmp_path / "titles.parquet")
    return tmp_path


def test_kinds_of_programmes(model):
    assert selected(model, "film") == {("stated", ""), ("predicted", "")}
    assert selected(model, "series") == {("numbered", "s3e4"), ("predicted", "s2e1")}  # an episode is no film
    assert selected(model, "news") == set()
    assert len(selected(model, "film", "series")) == 4


def test_a_model_of_an_older_version_has_no_kinds(tmp_path):
    pq.write_table(pa.table({"show_key": ["predicted"]}), tmp_path / "titles.parquet")
    assert selected(tmp_path, "film") == {("stated", "")}
