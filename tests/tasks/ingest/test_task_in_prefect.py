import json
from pathlib import Path

import fsspec
import pytest
from guides import guide, rows
from prefect import flow
from prefect.artifacts import Artifact
from prefect.blocks.system import Secret
from prefect.client.orchestration import get_client
from prefect.testing.utilities import prefect_test_harness

from storage.artifacts import Guide
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.feeds import FeedError
from tasks.ingest.task import check, ingest


@flow
def read_one(home: str, file: str) -> Guide:
    guide = ingest(home, (file,), IngestSettings())
    check(home, guide)
    return guide


@pytest.mark.slow
def test_in_a_flow_there_is_a_bar_and_a_bad_feed_is_not_tried_again(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_bytes(guide(programmes=5))
    (tmp_path / "b.xml").write_bytes(b"<html/>")
    with prefect_test_harness(server_startup_timeout=120):
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
            runs = client.read_task_runs()
        assert sorted((run.name, run.run_count) for run in runs) == [
            ("check", 1),
            ("ingest", 1),
            ("ingest", 1),
        ]


@flow
def read_feeds(home: str, feeds: list[str]) -> Guide:
    return ingest(home, feeds, IngestSettings())


@pytest.mark.slow
def test_a_secret_block_is_opened_in_the_task_and_kept_nowhere(tmp_path: Path) -> None:
    store = fsspec.filesystem("memory")
    store.pipe("/bucket/k111/guide.xml", guide(programmes=5))
    try:
        with prefect_test_harness(server_startup_timeout=120):
            secret = Secret(value="memory://bucket/k111/guide.xml")
            secret.save("my-guide")  # pyright: ignore[reportUnusedCoroutine]
            assert read_feeds(str(tmp_path / "home"), ["secret:my-guide"]).counts["programmes"] == 5
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
