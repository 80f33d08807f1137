import datetime
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import fsspec
import pyarrow.parquet as pq
import pytest
from guides import guide, rows
from prefect import flow
from prefect.artifacts import Artifact
from prefect.blocks.system import Secret
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowFilter, FlowFilterName

from storage.artifacts import Guide
from storage.catalogue.feeds import read_status
from storage.home.guides import current_guide
from storage.home.readings import read_readings
from storage.home.workspace import HomeLocked, Workspace
from storage.home.zones import set_zone
from tasks.ingest.anomalies import check_guide
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.feeds import FeedError
from tasks.ingest.task import check, ingest


def run(home: Path, *feeds: object, **settings: object) -> Guide:
    references = tuple(str(feed) for feed in feeds)
    return ingest.fn(str(home), references, IngestSettings(**settings))  # type: ignore[arg-type]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_publishes_a_guide_that_verifies(tmp_path: Path, home: Path) -> None:
    (tmp_path / "a.xml").write_bytes(
        guide('<channel id="one"><display-name>One</display-name></channel>', programmes=5)
    )
    artifact = run(home, tmp_path / "a.xml")
    assert artifact.counts == {"programmes": 5, "channels": 1, "feeds": 1, "descriptions": 0}
    assert Workspace(home).read(Guide, artifact.digest[:32]) == artifact
    table = pq.read_table(Workspace(home).folder(artifact) / "programmes.parquet")
    assert table.column("title").to_pylist() == [f"Show {i}" for i in range(5)]
    assert table.column("source").to_pylist() == [str(tmp_path / "a.xml")] * 5


def test_an_unchanged_feed_changes_nothing(
    tmp_path: Path, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.xml").write_bytes(guide(programmes=5))
    first = run(home, tmp_path / "a.xml")
    folder = Workspace(home).folder(first)
    before = {file: file.stat().st_mtime_ns for file in folder.glob("*.parquet")}
    report = read_status(home)
    with caplog.at_level("INFO", logger="guidespace.ingest"):
        assert run(home, tmp_path / "a.xml") == first
    assert "a.xml: unchanged (5 programmes seen, 5 stored, 0 duplicates, 0 rejected)" in caplog.text
    assert {file: file.stat().st_mtime_ns for file in folder.glob("*.parquet")} == before
    assert read_status(home) == report


def test_a_damaged_guide_is_published_again(tmp_path: Path, home: Path) -> None:
    (tmp_path / "a.xml").write_bytes(guide(programmes=5))
    first = run(home, tmp_path / "a.xml")
    (Workspace(home).folder(first) / "programmes.parquet").write_bytes(b"gone")
    assert run(home, tmp_path / "a.xml") == first
    assert pq.read_table(Workspace(home).folder(first) / "programmes.parquet").num_rows == 5


def test_a_failing_feed_is_reported_and_the_others_are_read(
    tmp_path: Path, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.xml").write_bytes(guide(programmes=5))
    (tmp_path / "b.xml").write_bytes(b"<html/>")
    (tmp_path / "c.xml").write_bytes(guide(programmes=7))
    published = run(home, tmp_path / "*.xml", tmp_path / "missing.xml")
    assert [(feed["source"], feed["stored"]) for feed in read_status(home)["feeds"]] == [
        (str(tmp_path / "a.xml"), 5),
        (str(tmp_path / "c.xml"), 7),
    ]  # type: ignore[attr-defined]
    errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert (
        [error.split(":")[0] for error in errors] == ["feed FAILED"] * 2
        and "missing.xml: no such file" in errors[0]
        and "b.xml: XML, but not XMLTV" in errors[1]
    )
    checked = check_guide(Workspace(home).folder(published), read_readings(home))
    assert [row["source"] for row in checked.readings if "not read: " in row["anomalies"]] == [
        str(tmp_path / "missing.xml"),
        str(tmp_path / "b.xml"),
    ]
    anomalies = check.fn(str(home), published)  # two that failed, two that ended before today
    assert len(anomalies) == 4 and sum("not read: " in anomaly for anomaly in anomalies) == 2


def test_the_run_fails_if_all_feeds_or_a_required_one_fail(tmp_path: Path, home: Path) -> None:
    (tmp_path / "a.xml").write_bytes(guide(programmes=5))
    (tmp_path / "b.xml").write_bytes(b"<html/>")
    (tmp_path / "c.xml").write_bytes(b"")
    with pytest.raises(
        FeedError,
        match=r"none of the 2 feeds can be read: .*b\.xml: XML, but not XMLTV.*; .*c\.xml: empty file",
    ):
        run(home, tmp_path / "b.xml", tmp_path / "c.xml")
    with pytest.raises(
        FeedError, match=r"^[^;]*b\.xml: XML, but not XMLTV.*the feed is listed in ingest\.required$"
    ):
        run(home, tmp_path / "*.xml", required=("*/b.xml",))
    assert [feed["stored"] for feed in read_status(home)["feeds"]] == [5]  # type: ignore[attr-defined]
    run(home, tmp_path / "*.xml", required=("*/other.xml",))


def test_left_out_sources_stay_in_the_catalogue(tmp_path: Path, home: Path) -> None:
    (tmp_path / "a.xml").write_bytes(guide(programmes=5))
    (tmp_path / "b.xml").write_bytes(guide(programmes=7))
    artifact = run(home, tmp_path / "a.xml", tmp_path / "b.xml", leave_out=("*/b.xml",))
    assert artifact.counts["programmes"] == 5 and read_status(home)["programmes"] == 12
    assert (
        run(home, tmp_path / "a.xml").counts["programmes"] == 7
    )  # two sources on one channel: the first is heard where it speaks


SLOW = """
import sys, time
from tasks.ingest import task
from tasks.ingest.settings import IngestSettings
from tasks.ingest import ingest as module
add = module.FeedWriter.add_programmes
def add_slowly(self, *batch):
    add(self, *batch)
    print("added", flush=True)
    time.sleep(float(sys.argv[3]))
module.FeedWriter.add_programmes = add_slowly
task.ingest.fn(sys.argv[1], (sys.argv[2],), IngestSettings(batch_rows=500))
"""


def large(seed: int) -> bytes:
    return guide(
        *(
            f'<programme channel="{i % 9}" start="202503{i % 28 + 1:02d}{i // 28 % 24:02d}"><title>'
            f"t {seed} {i}</title></programme>"
            for i in range(20_000)
        )
    )


def start(home: Path, file: Path, pause: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SLOW, str(home), str(file), str(pause)],
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )


def test_the_lock_names_its_process_and_status_can_be_read(tmp_path: Path, home: Path) -> None:
    (tmp_path / "a.xml").write_bytes(guide(programmes=5))
    run(home, tmp_path / "a.xml")
    (tmp_path / "b.xml").write_bytes(large(2))
    child = start(home, tmp_path / "b.xml", 0.2)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "added\n"
        with pytest.raises(HomeLocked, match=f"held by process {child.pid} "):
            run(home, tmp_path / "a.xml")
        assert read_status(home)["programmes"] == 5
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait(timeout=10)


def test_progress_of_a_long_feed(
    tmp_path: Path, home: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.xml").write_bytes(large(1))
    ticks = iter(range(10_000))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))
    with caplog.at_level("INFO", logger="guidespace.ingest"):
        run(home, tmp_path / "a.xml", batch_rows=1000)
    notes = [
        record.getMessage() for record in caplog.records if record.getMessage().startswith("feed 1 of 1")
    ]
    assert len(notes) >= 3 and notes[0].endswith("programmes") and "% of its bytes" in notes[0]


def test_the_current_guide_is_the_last_published_one(tmp_path: Path, home: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.xml").write_bytes(guide(programmes=5))
    feeds = [tmp_path / "a.xml", tmp_path / "b.xml"]
    both = run(home, *feeds)
    instant = datetime.datetime.now(datetime.UTC)
    one = run(home, *feeds, leave_out=("*/b.xml",))
    assert current_guide(Workspace(home)) == one != both
    ingest.fn(str(home), (), IngestSettings(), instant)
    assert current_guide(Workspace(home)) == one
    assert run(home, *feeds) == both
    assert current_guide(Workspace(home)) == both


def test_channels_have_the_zone_of_their_feed_or_of_the_home(tmp_path: Path, home: Path) -> None:
    for name in ("paris", "offset", "home"):
        named = f'<channel id="one"><display-name>{name}</display-name></channel>'
        (tmp_path / f"{name}.xml").write_bytes(guide(named, programmes=2))
    set_zone(Workspace(home).home, "Australia/Lord_Howe")
    feeds = [tmp_path / f"{name}.xml" for name in ("paris", "offset", "home")]
    zones = "*/paris.xml=Europe/Paris", "*/offset.xml=+0100"
    artifact = run(home, *feeds, zones=zones)
    table = pq.read_table(Workspace(home).folder(artifact) / "programmes.parquet", columns=["source", "zone"])
    assert {(Path(row["source"]).stem, row["zone"]) for row in table.to_pylist()} == {
        ("paris", "Europe/Paris"),
        ("offset", "Australia/Lord_Howe"),
        ("home", "Australia/Lord_Howe"),
    }
    set_zone(home, "Asia/Tokyo")
    assert run(home, *feeds, zones=zones).digest != artifact.digest


@flow
def read_one(home: str, file: str) -> Guide:
    guide = ingest(home, (file,), IngestSettings())
    check(home, guide)
    return guide


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_api")
def test_artifacts_in_a_flow_and_no_retry_of_a_bad_feed(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_bytes(guide(programmes=5))
    (tmp_path / "b.xml").write_bytes(b"<html/>")
    assert read_one(str(tmp_path / "home"), str(tmp_path / "a.xml")).counts["programmes"] == 5
    bar = Artifact.get("ingest")
    assert bar is not None and bar.type == "progress" and float(str(bar.data)) == 100.0
    table = Artifact.get("guide-checks")
    assert table is not None and table.type == "table"
    reading, day = json.loads(str(table.data))
    assert (reading["day"], reading["programmes"]) == ("reading", 5) and "before today" in reading[
        "anomalies"
    ]
    assert (day["day"], day["programmes"], day["channels"], day["anomalies"]) == ("2025-03-01", 5, 1, "")
    with pytest.raises(FeedError, match="its root is <html>"):
        read_one(str(tmp_path / "home"), str(tmp_path / "b.xml"))
    with get_client(sync_client=True) as client:
        runs = client.read_task_runs(flow_filter=FlowFilter(name=FlowFilterName(any_=["read-one"])))
    assert sorted((run.name, run.run_count) for run in runs) == [
        ("check", 1),
        ("ingest", 1),
        ("ingest", 1),
    ]


@flow
def read_feeds(home: str, feeds: list[str]) -> Guide:
    return ingest(home, feeds, IngestSettings())


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_api")
def test_a_secret_block_is_opened_in_the_task_and_not_stored(tmp_path: Path) -> None:
    store = fsspec.filesystem("memory")
    store.pipe("/bucket/k111/guide.xml", guide(programmes=5))
    try:
        secret = Secret(value="memory://bucket/k111/guide.xml")
        secret.save("my-guide", overwrite=True)  # pyright: ignore[reportUnusedCoroutine]
        assert read_feeds(str(tmp_path / "home"), ["secret:my-guide"]).counts["programmes"] == 5
        both = read_feeds(str(tmp_path / "home"), ["secret:nothing", "secret:my-guide"])
        assert both.counts["programmes"] == 5
        assert "secret:nothing: Prefect has no" in str(read_readings(tmp_path / "home"))
        with pytest.raises(FeedError, match="secret:nothing: Prefect has no Secret block of that name"):
            read_feeds(str(tmp_path / "home"), ["secret:nothing"])
        with get_client(sync_client=True) as client:
            kept = str([*client.read_flow_runs(), *client.read_task_runs(), *client.read_logs()])
    finally:
        store.rm("/bucket", recursive=True)
    kept += (tmp_path / "home" / "status.json").read_text(encoding="utf-8")
    assert "secret:my-guide" in kept and "k111" not in kept
    assert rows(tmp_path / "home", "SELECT source FROM feeds UNION SELECT source FROM validators") == [
        ("secret:my-guide",)
    ]
