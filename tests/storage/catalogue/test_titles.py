"""Properties of titles in a snapshot of a small guide."""

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.catalogue.connection import temporary_database
from storage.catalogue.titles import Airings
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


@pytest.fixture
def airings(guide: Path, tmp_path: Path) -> Iterator[Airings]:
    with opened(guide, VARIANTS, tmp_path) as airings:
        yield airings


@contextmanager
def opened(guide: Path, variants: pa.Table, folder: Path) -> Iterator[Airings]:
    pq.write_table(variants, folder / "variants.parquet")
    with temporary_database(folder) as connection:
        yield Airings(connection, guide, folder / "variants.parquet")


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    return home / publish_guide(home, ROWS).path


def microseconds(moment: datetime.datetime) -> int:
    return int(moment.replace(tzinfo=datetime.UTC).timestamp() * 1_000_000)


def test_categories_by_feed(airings: Airings):
    rows = [(source, category, titles.tolist()) for source, category, titles in airings.categories()]
    assert rows == [("a", "Family", [0]), ("a", "Kids", [0]), ("b", "Children", [0])]
    assert airings.titles_by_source() == {"a": 2, "b": 1}


def test_a_category_that_spans_batches_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("storage.catalogue.titles.BATCH_ROWS", 2048)
    names = [f"Title {number:05}" for number in range(5000)]
    rows = [Programme(name, ("Kids", "News")[: 2 - number % 2]) for number, name in enumerate(names)]
    guide = tmp_path / publish_guide(tmp_path, rows).path
    variants = pa.table({"raw_title": names, "title_id": pa.array(range(5000), pa.int32())})
    with opened(guide, variants, tmp_path) as airings:
        parts = [(category, titles.tolist()) for _, category, titles in airings.categories()]
    found: dict[str, list[int]] = {"Kids": [], "News": []}
    for category, titles in parts:
        found[category] += titles
    assert len(parts) > 2 and found == {"Kids": list(range(5000)), "News": list(range(0, 5000, 2))}


def test_no_airing_has_a_category(tmp_path: Path):
    guide = tmp_path / publish_guide(tmp_path, [Programme("News")]).path
    with opened(guide, VARIANTS, tmp_path) as airings:
        assert list(airings.categories()) == [] and airings.titles_by_source() == {"toy": 1}


def test_channels_by_airings_then_name(airings: Airings):
    rows = airings.channels(0, 2).to_pylist()
    assert rows == [
        {"title_id": 0, "channels": ["Channel One", "Channel Two"]},
        {"title_id": 1, "channels": ["Channel Two", "Channel One"]},
    ]
    first = airings.channels(0, 2, limit=1)["channels"].to_pylist()
    assert first == [["Channel One"], ["Channel Two"]]
    assert airings.channels(1, 2).to_pylist() == rows[1:] and airings.channels(2, 2).to_pylist() == []


def test_days_are_the_latest_each_once(airings: Airings):
    day = lambda later: f"{START + later * DAY:%Y-%m-%d}"  # noqa: E731
    assert airings.days(0, 2).to_pylist() == [
        {"title_id": 0, "days": [day(0), day(1)]},
        {"title_id": 1, "days": [day(0), day(2), day(3)]},
    ]
    assert airings.days(0, 2, limit=2)["days"].to_pylist() == [[day(0), day(1)], [day(2), day(3)]]


def test_times_are_the_latest_in_order_each_with_its_channel(airings: Airings):
    minute = lambda later: microseconds(START + later * DAY) // 60_000_000  # noqa: E731
    one, two = "Channel One", "Channel Two"
    assert airings.times(0, 2, 9).to_pylist() == [
        {"title_id": 0, "minutes": [minute(0), minute(0), minute(1)], "names": [one, two, one]},
        {"title_id": 1, "minutes": [minute(0), minute(2), minute(3)], "names": [one, two, two]},
    ]
    latest = {"title_id": 0, "minutes": [minute(0), minute(1)], "names": [two, one]}
    assert airings.times(0, 1, 2).to_pylist() == [latest]


def test_variants_join_their_show(guide: Path, tmp_path: Path):
    together = pa.table({"raw_title": ["Maus", "News"], "title_id": pa.array([0, 0], pa.int32())})
    with opened(guide, together, tmp_path) as airings:
        assert airings.titles_by_source() == {"a": 1, "b": 1}
        assert airings.channels(0, 1)["channels"].to_pylist() == [["Channel One", "Channel Two"]]
