"""The commands that only read, and the flows of the same names."""

import datetime
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer import BadParameter

from flows.cli.main import main
from flows.cli.options import read_date_or_instant
from storage.stages import ROOT

TIMES = 'start="20250301100000" stop="20250301110000"'
PROGRAMME = f'<tv><programme channel="one" {TIMES}><title>{{}}</title></programme></tv>'


def test_ingest_reads_and_publishes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "g.xml").write_text(PROGRAMME.format("a"), encoding="utf-8")
    command = [
        "ingest",
        "--feed",
        str(tmp_path / "g.xml"),
        "--home",
        str(tmp_path / "home"),
        "--set",
        "ingest.batch_rows=10",
    ]
    assert main(command) == 0
    first = capsys.readouterr().out
    assert (
        "g.xml: 1 programmes seen, 1 stored, 0 duplicates, 0 rejected" in first
        and "(1 programmes, 1 channels, 1 feeds, 0 descriptions)" in first
    )
    assert main(command) == 0
    assert "g.xml: unchanged (1 programmes seen" in capsys.readouterr().out
    assert main(["ingest", "--feed", str(tmp_path / "none.xml"), "--home", str(tmp_path / "home")]) == 2
    assert "no such file" in capsys.readouterr().err


def test_status_shows_failed_feeds_if_ingest_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good.xml").write_text(PROGRAMME.format("a"), encoding="utf-8")
    untitled = f'<programme channel="one" {TIMES}/>'
    (tmp_path / "bad.xml").write_text(PROGRAMME.format("a").replace("</tv>", f"{untitled * 9}</tv>"), "utf-8")
    home, bad = ("--home", str(tmp_path / "home")), str(tmp_path / "bad.xml")
    command = ["ingest", "--feed", bad, str(tmp_path / "good.xml"), *home]
    reason = f"{bad}: 9 of 10 programmes cannot be read"
    for changes, code in (["--set", f'ingest.required=["{bad}"]'], 2), ([], 3):
        assert main([*command, *changes]) == code
        capsys.readouterr()
        assert main(["status", *home]) == 0
        assert f"feed FAILED: {reason}" in capsys.readouterr().out
        assert main(["status", *home, "--json"]) == 0
        (failure,) = json.loads(capsys.readouterr().out)["failures"]
        assert failure["source"] == bad and failure["reason"].startswith(reason)


def test_backfill_reads_dated_guides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for day in (1, 2, 3):
        (tmp_path / f"g-2025-02-0{day}.xml").write_text(PROGRAMME.format(day), encoding="utf-8")
    command = [
        "backfill",
        "--feed",
        str(tmp_path),
        "--home",
        str(tmp_path / "home"),
        "--from",
        "2025-02-01",
        "--to",
        "2025-02-02",
    ]
    assert main(command) == 0
    assert capsys.readouterr().out.count("g-{date}.xml: 1 programmes seen, 1 stored") == 2
    assert main([*command[:6], "tomorrow", *command[7:]]) == 2
    assert "'tomorrow' does not match the format" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2025-03-31", datetime.datetime(2025, 3, 31, 23, 59, 59, 999999)),  # in the zone of the home
        ("2025-03-31T18:00", datetime.datetime(2025, 3, 31, 18)),
        ("2025-03-31T18:00+02:00", datetime.datetime(2025, 3, 31, 16, tzinfo=datetime.UTC)),
    ],
)
def test_instants(text: str, instant: datetime.datetime) -> None:
    assert read_date_or_instant(text) == instant


def test_invalid_dates_are_refused() -> None:
    with pytest.raises(BadParameter, match="expected YYYY-MM-DD"):
        read_date_or_instant("2025-02-31")


def test_a_setting_of_another_stage_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "g.xml").write_text(PROGRAMME.format("a"), encoding="utf-8")
    assert (
        main(
            [
                "ingest",
                "--feed",
                str(tmp_path / "g.xml"),
                "--home",
                str(tmp_path / "home"),
                "--set",
                "train.epochs=5",
            ]
        )
        == 2
    )
    assert (
        "--set 'train.epochs=5': expected NAME=VALUE such as ingest.batch_rows=1000; valid names: ingest"
        in capsys.readouterr().err
    )


@pytest.mark.slow
def test_a_large_guide_is_read_in_the_memory_that_the_docs_promise(tmp_path: Path) -> None:
    """140 MB of XML, most of it descriptions; docs/feeds.md promises under 500 MiB whatever the size."""
    with open(tmp_path / "g.xml", "w", encoding="utf-8") as file:
        file.write("<tv>")
        for number in range(240_000):
            start = datetime.datetime(2025, 3, 1) + datetime.timedelta(minutes=number // 50 * 5)
            text = f"Part {number} of a story that goes on and on. " * 10
            file.write(
                f'<programme channel="{number % 50}" start="{start:%Y%m%d%H%M%S}">'
                f"<title>Show {number % 3000}</title><desc>{text}</desc></programme>\n"
            )
        file.write("</tv>")
    given = ["ingest", "--feed", str(tmp_path / "g.xml"), "--home", str(tmp_path / "home")]
    code = f"from flows.cli.main import main, configure_memory; configure_memory(); assert main({given}) == 0"
    peak = "; print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"
    done = subprocess.run(
        [sys.executable, "-c", code + peak],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=280,
        check=True,
    )
    assert "240,000 stored" in done.stdout
    print(
        f"{(tmp_path / 'g.xml').stat().st_size / 1e6:.0f} MB read "
        f"with {int(done.stdout.split()[-1]) / 1024:.0f} MiB at most"
    )
    assert int(done.stdout.split()[-1]) / 1024 < 500


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_api")
def test_the_tasks_publish_and_check(tmp_path: Path) -> None:
    from prefect import flow
    from prefect.artifacts import Artifact

    from tasks.ingest.settings import IngestSettings
    from tasks.ingest.sources.dates import dated_guides
    from tasks.ingest.task import check, ingest

    @flow
    def read(feeds, home):
        guide = ingest(home, feeds, IngestSettings())
        check(home, guide)
        return guide

    for day in (1, 2):
        (tmp_path / f"g-2025-02-0{day}.xml").write_text(PROGRAMME.format(day), encoding="utf-8")
    home = str(tmp_path / "home")
    span = datetime.date(2025, 2, 1), datetime.date(2025, 2, 28)
    guide = read(dated_guides([str(tmp_path)], *span, datetime.UTC), home)
    assert guide.counts == {"programmes": 1, "channels": 1, "feeds": 2, "descriptions": 0}
    table = Artifact.get("guide-checks")
    assert table is not None and table.type == "table" and "category_share" in str(table.data)
    assert read([str(tmp_path / "g-2025-02-01.xml")], home).counts["feeds"] == 3


def test_enrich_imports_nothing_that_only_downloads_and_runs_need(night, tmp_path):
    guide = tmp_path / "guide.xml"
    guide.write_text(
        '<tv><programme channel="one" start="20250301100000"><title>News</title></programme></tv>',
        encoding="utf-8",
    )
    command = ["enrich", str(guide), str(tmp_path / "filled.xml"), "--home", str(night[0])]
    code = f"import sys\nsys.argv[1:] = {command}\nimport flows.server\nfrom flows.cli.main import entry\n"
    unwanted = {"httpx", "httpcore", "fsspec", "torch", "mlflow"}
    code += f"def exit_process(code): sys.exit(' '.join({unwanted} & set(sys.modules)) or code)\n"
    code += "flows.server.exit_process = exit_process\nentry()"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "filled.xml").exists()
