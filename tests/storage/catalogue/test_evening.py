"""Upcoming programmes from the Parquet files of a Guide."""

import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.catalogue.evening import start_range, upcoming_programmes

DAY = datetime.datetime(2026, 1, 14)


def hour(number: float) -> datetime.datetime:
    return DAY + datetime.timedelta(hours=number)


@pytest.fixture
def guide(tmp_path: Path) -> Path:
    folder = tmp_path / "it's [a] guide"
    folder.mkdir()
    rows = [
        ("one", hour(17), hour(18), "Early"),
        ("one", hour(18), hour(20), "Vera"),
        ("two", hour(18), None, "News"),
        ("one", hour(23), hour(24), "Late"),
        *(("two", hour(18 - 24 * day), None, "News") for day in range(1, 5)),
    ]
    programmes = [
        {"source": "s", "channel": channel, "start": start, "stop": stop, "title": title, "sub_title": None}
        | {"categories": ["Crime"], "episode_numbers": ["1.2."]}
        for channel, start, stop, title in rows
    ]
    pq.write_table(pa.Table.from_pylist(programmes), folder / "programmes.parquet")
    pq.write_table(
        pa.table({"source": ["s"], "channel": ["one"], "name": ["One"]}), folder / "channels.parquet"
    )
    texts = {"title": ["Vera", "Vera"], "description": ["rare", "x" * 400], "airings": [1, 3]}
    pq.write_table(pa.table(texts), folder / "descriptions.parquet")
    return folder


def test_programmes_that_begin_within_the_hours(guide: Path) -> None:
    found = upcoming_programmes(guide, hour(18), hour(23)).to_pylist()
    assert [(row["title"], row["channel"], row["channel_name"]) for row in found] == [
        ("Vera", "one", "One"),
        ("News", "two", "two"),
    ]
    vera, news = found
    assert (vera["start"], vera["stop"], vera["days"]) == (hour(18), hour(20), 1)
    assert (news["stop"], news["days"], news["description"], news["sub_title"]) == (None, 5, "", "")
    assert (
        vera["description"] == "x" * 300
        and vera["categories"] == ["Crime"]
        and (vera["season"], vera["episode"]) == (2, 3)  # read here: the guide is an older version's
    )


def test_hours_without_a_programme_have_no_rows(guide: Path) -> None:
    assert len(upcoming_programmes(guide, hour(30), hour(40))) == 0
    assert start_range(guide) == (hour(18 - 96), hour(23))
