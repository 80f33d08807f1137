import json
from pathlib import Path

import pytest
from guides import guide
from prefect import flow
from prefect.artifacts import Artifact
from prefect.client.orchestration import get_client
from prefect.testing.utilities import prefect_test_harness

from storage.artifacts import Guide
from tasks.ingest.feeds import FeedError
from tasks.ingest.settings import IngestSettings
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
        assert (reading["day"], reading["programmes"]) == ("reading", 5) and "before today" in reading["anomalies"]
        assert (day["day"], day["programmes"], day["channels"], day["anomalies"]) == ("2025-03-01", 5, 1, "")
        with pytest.raises(FeedError, match="its root is <html>"):
            read_one(str(tmp_path / "home"), str(tmp_path / "b.xml"))
        with get_client(sync_client=True) as client:
            runs = client.read_task_runs()
        assert sorted((run.name, run.run_count) for run in runs) == [("check", 1), ("ingest", 1), ("ingest", 1)]
