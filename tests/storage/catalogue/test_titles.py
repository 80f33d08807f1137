"""What a Guide snapshot says of titles, against a small guide that a person can count."""

import datetime
from pathlib import Path

import pyarrow as pa
import pytest

from storage.catalogue.titles import raw_titles, title_categories, title_channels, titles_by_source
from tests.worlds import START, Programme, publish_guide

DAY = datetime.timedelta(days=1)
ROWS = [
    Programme("Maus", ("Kids", "Family"), START + DAY, "one", "a", "de"),
    Programme("Maus", ("Kids",), START, "two", "a", "de"),
    Programme("Maus", ("Children",), START, "one", "b", "en"),
    Programme("News", (), START, "one", "a", None),
    Programme("News", (), START + 2 * DAY, "two", "a", None),
    Programme("News", (), START + 3 * DAY, "two", "a", None),
]
VARIANTS = pa.table({"raw_title": ["Maus", "News"], "title_id": pa.array([0, 1], pa.int32())})


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    return home / publish_guide(home, ROWS).path


def microseconds(moment: datetime.datetime) -> int:
    return int(moment.replace(tzinfo=datetime.UTC).timestamp() * 1_000_000)


def test_raw_titles(guide: Path):
    assert raw_titles(guide).to_pylist() == [
        {"raw_title": "Maus", "airings": 3, "first_airing": microseconds(START), "last_airing": microseconds(START + DAY), "language": "de"},
        {"raw_title": "News", "airings": 3, "first_airing": microseconds(START), "last_airing": microseconds(START + 3 * DAY), "language": None},
    ]


def test_categories_by_feed(guide: Path):
    rows = [tuple(row.values()) for row in title_categories(guide, VARIANTS).to_pylist()]
    assert rows == [("a", "Family", 0), ("a", "Kids", 0), ("b", "Children", 0)]


def test_titles_by_feed(guide: Path):
    assert titles_by_source(guide, VARIANTS) == {"a": 2, "b": 1}


def test_channels_by_airings_then_name(guide: Path):
    rows = title_channels(guide, VARIANTS).to_pylist()
    assert rows == [{"title_id": 0, "channels": ["Channel One", "Channel Two"]}, {"title_id": 1, "channels": ["Channel Two", "Channel One"]}]
    assert [row["channels"] for row in title_channels(guide, VARIANTS, limit=1).to_pylist()] == [["Channel One"], ["Channel Two"]]


def test_variants_join_their_show(guide: Path):
    together = pa.table({"raw_title": ["Maus", "News"], "title_id": pa.array([0, 0], pa.int32())})
    assert titles_by_source(guide, together) == {"a": 1, "b": 1}
    assert title_channels(guide, together).to_pylist() == [{"title_id": 0, "channels": ["Channel One", "Channel Two"]}]
