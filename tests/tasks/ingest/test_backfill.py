import datetime
from pathlib import Path

import pytest
from guides import guide, rows

from storage.home.workspace import Workspace
from tasks.ingest.publish import read_and_publish
from tasks.ingest.results import FeedResult
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.dates import dated_guides, extract_date
from tasks.ingest.sources.feeds import FeedError


@pytest.mark.parametrize(
    ("name", "date", "source"),
    [
        ("/g/guide-2025-03-31.xml.gz", (2025, 3, 31), "/g/guide-{date}.xml.gz"),
        ("/g/20250331.xml", (2025, 3, 31), "/g/{date}.xml"),
        ("/2024-01-01/uk_2025.03.31_full.xml", (2025, 3, 31), "/2024-01-01/uk_{date}_full.xml"),
        ("/g/magenta_de_2022-05.xml.gz", (2022, 5, 1), "/g/magenta_de_{date}.xml.gz"),
        ("/g/guide-2025-02-31.xml", None, None),
        ("/g/guide-123420250331.xml", None, None),
        ("/2025-03-31/guide.xml", None, None),
    ],
)
def test_dates_in_names(name: str, date: tuple[int, int, int] | None, source: str | None) -> None:
    assert extract_date(name) == (datetime.date(*date) if date else None, source or name)


def test_a_folder_of_dated_guides_is_one_source_with_a_history(tmp_path: Path) -> None:
    programme = (
        '<programme channel="one" start="2025030110{:02d}00" stop="20250301110000"><title>{}</title>'
        "</programme>"
    )
    for day, title in ((3, "third"), (1, "first"), (2, "second"), (9, "too late")):
        (tmp_path / f"guide-2025-02-0{day}.xml").write_bytes(guide(programme.format(0, title)))
    first, last = datetime.date(2025, 2, 1), datetime.date(2025, 2, 3)
    dated = dated_guides([str(tmp_path)], first, last, datetime.UTC)
    assert [guide.grabbed_at.day for guide in dated] == [1, 2, 3]
    home = tmp_path / "home"
    outcomes: list[FeedResult] = []
    settings = IngestSettings()
    published = read_and_publish(
        Workspace(home),
        dated,
        settings,
        None,
        lambda event: outcomes.append(event) if isinstance(event, FeedResult) else None,
    )
    assert published.counts == {"programmes": 1, "channels": 1, "feeds": 3, "descriptions": 0}
    assert [outcome.unchanged for outcome in outcomes] == [False] * 3
    query = "SELECT title FROM programmes_as_of(TIMESTAMP '2025-02-0{} 12:00')"
    assert [rows(home, query.format(day)) for day in (1, 2, 3)] == [[("first",)], [("second",)], [("third",)]]
    assert rows(home, "SELECT DISTINCT source FROM feeds") == [(f"{tmp_path}/guide-{{date}}.xml",)]
    outcomes.clear()
    assert (
        read_and_publish(
            Workspace(home),
            dated,
            settings,
            None,
            lambda event: outcomes.append(event) if isinstance(event, FeedResult) else None,
        )
        == published
    )
    assert [outcome.unchanged for outcome in outcomes] == [True] * 3
    in_paris = IngestSettings(zones=("*=Europe/Paris",))
    for unchanged in (False, True):
        outcomes.clear()
        elsewhere = read_and_publish(
            Workspace(home),
            dated,
            in_paris,
            None,
            lambda event: outcomes.append(event) if isinstance(event, FeedResult) else None,
        )
        assert [outcome.unchanged for outcome in outcomes] == [
            unchanged
        ] * 3 and elsewhere.digest != published.digest
    assert [rows(home, query.format(day)) for day in (1, 2, 3)] == [[("first",)], [("second",)], [("third",)]]
    then = read_and_publish(
        Workspace(home), [], IngestSettings(), datetime.datetime(2025, 2, 2, 12, tzinfo=datetime.UTC), print
    )
    assert then.digest != published.digest and then.counts["feeds"] == 4
    with pytest.raises(FeedError, match="no guide with a date from 2020-01-01"):
        dated_guides([str(tmp_path)], datetime.date(2020, 1, 1), datetime.date(2020, 1, 2), datetime.UTC)


@pytest.mark.parametrize("zones", [("Europe/Paris",), ("*=Nowhere/Land",), ("=CET",)])
def test_invalid_zones_are_refused(zones: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="is not PATTERN=ZONE"):
        IngestSettings(zones=zones)
