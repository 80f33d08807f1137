"""The installed DuckDB reads back what it inserted: 2.0.0 does not, under a memory limit and with two
threads."""

import datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from storage.home.workspace import Workspace
from tasks.ingest.publish import read_and_publish
from tasks.ingest.results import FeedResult
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.dates import dated_guides

ROWS = 120_000
PROGRAMME = (
    '<programme channel="{}" start="{:%Y%m%d%H%M}00" stop="{:%Y%m%d%H%M}00">'
    "<title>{} {}</title><category>c</category></programme>\n"
)


@pytest.fixture(scope="module")
def texts() -> pa.Table:
    return pa.table(
        {
            "id": range(ROWS),
            **{
                f"text{i}": [f"text {i} of row {row}, some thirty long" for row in range(ROWS)]
                for i in range(10)
            },
        }
    )


@pytest.mark.parametrize(
    ("megabytes", "threads"),
    [(160, 2), *(pytest.param(*each, marks=pytest.mark.slow) for each in ((160, 4), (250, 2), (250, 4)))],
)
def test_rows_are_counted_alike_three_times(
    tmp_path: Path, texts: pa.Table, megabytes: int, threads: int
) -> None:
    with duckdb.connect(str(tmp_path / "work.duckdb")) as connection:
        connection.execute(f"SET threads = {threads}; SET memory_limit = '{megabytes}MB'")
        connection.execute(
            f"CREATE TABLE kept (id BIGINT, {', '.join(f'text{i} VARCHAR' for i in range(10))})"
        )
        connection.begin()
        connection.execute("CREATE TEMP TABLE staged AS FROM kept LIMIT 0")
        assert connection.execute("INSERT INTO staged FROM texts").fetchall() == [(ROWS,)]
        assert connection.execute("SELECT count(*) FROM staged").fetchall() == [(ROWS,)]
        assert connection.execute("SELECT count(*), min(id) FROM staged").fetchall() == [(ROWS, 0)]
        assert connection.execute("INSERT INTO kept FROM staged").fetchall() == [(ROWS,)]
        connection.commit()
        assert connection.execute("SELECT count(*), sum(id) FROM kept").fetchall() == [
            (ROWS, ROWS * (ROWS - 1) // 2)
        ]


def write_guide(path: Path, month: int) -> None:
    """A guide of 120,000 programmes on 100 channels."""
    first = datetime.datetime(2025, month, 1)
    hour = datetime.timedelta(minutes=30)
    with open(path, "w", encoding="utf-8") as file:
        file.write("<tv>\n")
        for channel in range(100):
            for place in range(ROWS // 100):
                file.write(
                    PROGRAMME.format(channel, first + place * hour, first + (place + 1) * hour, month, place)
                )
        file.write("</tv>\n")


@pytest.mark.slow
def test_two_large_guides_in_one_command_are_stored_whole(tmp_path: Path) -> None:
    """Then both again in other words: two feeds of known sources, parsed by two processes, over 110,592
    programmes an insert."""
    for month in (1, 2):
        write_guide(tmp_path / f"guide-2025-0{month}.xml", month)
    settings, workspace = IngestSettings(workers=2), Workspace(tmp_path / "home")
    outcomes: list[FeedResult] = []
    span = datetime.date(2025, 1, 1), datetime.date(2025, 2, 28)
    dated = dated_guides([str(tmp_path / "*.xml")], *span, datetime.UTC)
    published = read_and_publish(
        workspace,
        dated,
        settings,
        None,
        lambda event: outcomes.append(event) if isinstance(event, FeedResult) else None,
    )
    assert [outcome.counts.stored for outcome in outcomes] == [ROWS, ROWS] and published.counts[
        "programmes"
    ] == 2 * ROWS
    for title in ("<title>", "<title>again "):
        outcomes.clear()
        for file in tmp_path.glob("*.xml"):
            file.write_text(file.read_text(encoding="utf-8").replace("<title>", title), encoding="utf-8")
        read_and_publish(
            workspace,
            [str(tmp_path)],
            settings,
            None,
            lambda event: outcomes.append(event) if isinstance(event, FeedResult) else None,
        )
        assert [outcome.counts.stored for outcome in outcomes] == [ROWS, ROWS]
