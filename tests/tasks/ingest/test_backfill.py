import datetime
from pathlib import Path

import pytest
from guides import NOW, guide, local_settings, read, rows

from storage.catalogue.connection import Catalogue
from storage.home.workspace import Workspace
from tasks.ingest.ingest import ingest_feeds
from tasks.ingest.parallel import parse_to_folder, read_folder
from tasks.ingest.publish import read_and_publish
from tasks.ingest.results import Failure, FeedResult
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.dates import date_of, dated_guides
from tasks.ingest.sources.download import fetch
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
    assert date_of(name) == (datetime.date(*date) if date else None, source or name)


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
    settings = IngestSettings(workers=1)  # two: test_two_large_guides_in_one_command
    published = read_and_publish(
        Workspace(home),
        dated,
        settings,
        None,
        lambda event: outcomes.append(event) if isinstance(event, FeedResult) else None,
    )
    assert published.counts == {"programmes": 1, "channels": 1, "feeds": 3, "descriptions": 0}
    assert [outcome.unchanged for outcome in outcomes] == [False] * 3 and not (home / "parsed").exists()
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


@pytest.mark.slow
@pytest.mark.parametrize("pool", ["processes", "dask"])
def test_parallel_and_sequential_ingest_are_equal(tmp_path: Path, pool: str) -> None:
    if pool == "dask":
        pytest.importorskip(
            "distributed", reason="distributed is not installed: pip install 'guidespace[dask]'"
        )
    for number in range(4):
        broken = '<programme channel="x" start="soon"><title>lost</title></programme>'
        extra = (
            '<programme channel="x" start="2025"><title>é\u200b</title><desc>d</desc></programme>'.replace(
                '"2025"', '"20250301"'
            )
        )
        (tmp_path / f"{number}.xml").write_bytes(
            guide(extra, broken, f'<channel id="{number}"/>', programmes=5 + number)
        )
    contents = []
    for workers in (1, 2):
        home = tmp_path / str(workers)
        home.mkdir()
        outcomes = read(home, tmp_path / "*.xml", workers=workers, pool=pool, batch_rows=3)
        tables = [
            rows(home, f"FROM {table} ORDER BY ALL")
            for table in ("programmes", "details", "originals", "channel_history", "rejects", "windows")
        ]
        contents.append((outcomes, tables))
    assert contents[0] == contents[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"<html/>", "XML, but not XMLTV"), (b"", "empty file")],
    ids=["when parsed", "when opened"],
)
def test_a_failure_in_a_worker_is_reported_and_does_not_stop_others(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    for name in "abde":
        (tmp_path / f"{name}.xml").write_bytes(guide(programmes=5))
    (tmp_path / "c.xml").write_bytes(content)
    with Catalogue.open(tmp_path) as catalogue:
        settings = IngestSettings(workers=2)
        dated = [str(tmp_path / "*.xml")]
        events = list(ingest_feeds(catalogue, dated, settings, clock=lambda: 0.0, now=lambda: NOW))
        read_sources = catalogue.connection.execute("SELECT source FROM feeds ORDER BY source").fetchall()
    (failure,) = [event for event in events if isinstance(event, Failure)]
    assert failure.source == str(tmp_path / "c.xml") and f"c.xml: {problem}" in str(failure.error)
    assert read_sources == [(str(tmp_path / f"{name}.xml"),) for name in "abde"]
    assert not (tmp_path / "parsed").exists()  # nor what was parsed ahead


def test_a_feed_is_parsed_again_after_a_worker_died(tmp_path: Path) -> None:
    (tmp_path / "g.xml").write_bytes(guide(programmes=5))
    folder = tmp_path / "parsed" / "1.0"
    folder.mkdir(parents=True)
    (folder / "programmes").write_bytes(b"half a ba")
    with fetch(str(tmp_path / "g.xml"), tmp_path, local_settings(size_cap_bytes=1 << 20)) as fetched:
        assert parse_to_folder(fetched.feeds[0], 1 << 20, 30, "", folder) == [0]
    assert [batch.programmes.num_rows for batch in read_folder(folder, [0])] == [5]


@pytest.mark.parametrize("zones", [("Europe/Paris",), ("*=Nowhere/Land",), ("=CET",)])
def test_invalid_zones_are_refused(zones: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="is not PATTERN=ZONE"):
        IngestSettings(zones=zones)
