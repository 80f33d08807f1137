"""The queries of docs/catalogue.md, and all columns that the page names."""

import datetime
import re
from pathlib import Path

import pytest

from storage.catalogue.connection import Catalogue
from tasks.ingest.ingest import ingest_feeds
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.dates import DatedFeed

PAGE = Path(__file__).resolve().parents[3] / "docs" / "catalogue.md"
GUIDE = """<tv><channel id="one"><display-name>One</display-name><icon src="i.png"/><lcn>7</lcn></channel>
<programme channel="one" start="20250301200000" stop="20250301210000">\
<title lang="en">Series</title><title lang="de">Serie</title><desc>long</desc>
<credits><actor role="Self">Ann Actor</actor></credits>\
<episode-num system="xmltv_ns">1/3 . 4/10 . </episode-num></programme>
<programme channel="one" start="20250301210000" stop="20250301220000"><title>{}</title></programme>
<programme channel="one" start="never"><title>lost</title></programme></tv>"""


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory):
    home = tmp_path_factory.mktemp("home")
    given = []
    for day, title in ((1, "News"), (2, "Football")):
        file = home / f"{day}.xml"
        file.write_text(GUIDE.format(title), encoding="utf-8")
        given.append(
            DatedFeed(
                location=str(file),
                source="s",
                grabbed_at=datetime.datetime(2025, 2, day, tzinfo=datetime.UTC),
            )
        )
    with Catalogue.open(home) as opened:
        list(
            ingest_feeds(
                opened,
                given,
                IngestSettings(max_reject_share=0.5),
                clock=lambda: 0.0,
                now=lambda: datetime.datetime(2025, 3, 1, tzinfo=datetime.UTC),
            )
        )
        yield opened


EIGHT, NINE, TEN = (datetime.datetime(2025, 3, 1, hour) for hour in (20, 21, 22))
LOST = '<programme channel="one" start="never"><title>lost</title></programme>'
ANSWERS = [
    [(EIGHT, NINE, "Series", None, "long"), (NINE, TEN, "Football", None, None)],
    [("Series", 2, 1)],
    [("Series", ["Series [en]", "Serie [de]"], EIGHT)],
    [("one", NINE, "News", "Football")],
    [("s", "bad_start", 2, 33.3, 5, LOST)],
]


@pytest.mark.parametrize("number", range(5))
def test_queries_of_the_page(catalogue: Catalogue, number: int) -> None:
    queries = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(queries) == 5
    found = catalogue.connection.execute(queries[number]).fetchall()
    assert [
        tuple(sorted(cell, reverse=True) if isinstance(cell, list) else cell for cell in row) for row in found
    ] == [
        tuple(sorted(cell, reverse=True) if isinstance(cell, list) else cell for cell in row)
        for row in ANSWERS[number]
    ]


def test_all_tables_and_columns_are_documented(catalogue: Catalogue) -> None:
    page = PAGE.read_text(encoding="utf-8")
    described = dict(re.findall(r"^\| `(\w+)` \|[^|]*\| (.*) \|$", page, re.MULTILINE))
    for (table,) in catalogue.connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE NOT temporary AND table_name <> 'migrations'"
    ).fetchall():
        columns = [
            name
            for (name,) in catalogue.connection.execute(
                "SELECT column_name FROM duckdb_columns() WHERE table_name = ?", [table]
            ).fetchall()
        ]
        assert [name for name in columns if f"`{name}`" not in described[table]] == []
    for (view,) in catalogue.connection.execute(
        "SELECT view_name FROM duckdb_views() WHERE NOT internal"
    ).fetchall():
        assert f"| `{view}` |" in page


def test_totals_of_episode_numbers(catalogue: Catalogue) -> None:
    assert catalogue.connection.execute(
        "SELECT number, season, seasons, episode, episodes, part, parts FROM episodes"
    ).fetchall() == [("1/3 . 4/10 .", 2, 3, 5, 10, None, None)]
    assert catalogue.connection.execute("SELECT name, icon, lcn FROM channels").fetchall() == [
        ("One", "i.png", "7")
    ]
