"""The commands that only read, and the flows of the same names."""

import datetime
from pathlib import Path

import pytest

from flows.__main__ import main
from flows.reading import read_instant
from flows.settings import SettingError

PROGRAMME = '<tv><programme channel="one" start="20250301100000" stop="20250301110000"><title>{}</title></programme></tv>'


def test_ingest_reads_and_publishes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "g.xml").write_text(PROGRAMME.format("a"))
    command = ["ingest", "--feed", str(tmp_path / "g.xml"), "--home", str(tmp_path / "home"), "--set", "ingest.batch_rows=10"]
    assert main(command) == 0
    first = capsys.readouterr().out
    assert "g.xml: 1 programmes seen, 1 stored, 0 duplicates, 0 rejected" in first and "(1 programmes, 1 channels, 1 feeds)" in first
    assert main(command) == 0
    assert "g.xml: unchanged (1 programmes seen" in capsys.readouterr().out
    assert main(["ingest", "--feed", str(tmp_path / "none.xml"), "--home", str(tmp_path / "home")]) == 2
    assert "no such file" in capsys.readouterr().err


def test_backfill_reads_dated_guides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for day in (1, 2, 3):
        (tmp_path / f"g-2025-02-0{day}.xml").write_text(PROGRAMME.format(day))
    command = ["backfill", "--feed", str(tmp_path), "--home", str(tmp_path / "home"), "--from", "2025-02-01", "--to", "2025-02-02", "--set", "ingest.workers=1"]
    assert main(command) == 0
    assert capsys.readouterr().out.count("g-{date}.xml: 1 programmes seen, 1 stored") == 2
    assert main([*command[:6], "tomorrow", *command[7:]]) == 2
    assert "'tomorrow' is no date; expected YYYY-MM-DD" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2025-03-31", datetime.datetime(2025, 3, 31, 23, 59, 59, 999999, datetime.UTC)),
        ("2025-03-31T18:00", datetime.datetime(2025, 3, 31, 18, tzinfo=datetime.UTC)),
        ("2025-03-31T18:00+02:00", datetime.datetime(2025, 3, 31, 16, tzinfo=datetime.UTC)),
    ],
)
def test_instants(text: str, instant: datetime.datetime) -> None:
    assert read_instant(text) == instant


def test_what_is_no_instant_is_refused() -> None:
    with pytest.raises(SettingError, match="expected YYYY-MM-DD"):
        read_instant("2025-02-31")


@pytest.mark.slow
def test_the_flows_publish_and_check(tmp_path: Path) -> None:
    from prefect.artifacts import Artifact
    from prefect.testing.utilities import prefect_test_harness

    from flows.feeds import backfill, ingest_feeds

    for day in (1, 2):
        (tmp_path / f"g-2025-02-0{day}.xml").write_text(PROGRAMME.format(day))
    home = str(tmp_path / "home")
    with prefect_test_harness(server_startup_timeout=120):
        guide = backfill([str(tmp_path)], datetime.date(2025, 2, 1), datetime.date(2025, 2, 28), home)
        assert guide.counts == {"programmes": 1, "channels": 1, "feeds": 2}
        table = Artifact.get("guide-checks")
        assert table is not None and table.type == "table" and "category_share" in str(table.data)
        assert ingest_feeds([str(tmp_path / "g-2025-02-01.xml")], home).counts["feeds"] == 3
