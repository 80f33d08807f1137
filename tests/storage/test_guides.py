"""The current guide is that of the latest instant, whichever was written or read last."""

import datetime
import json
import os
from pathlib import Path

import pytest

from storage.artifacts import Guide
from storage.home.guides import current_guide
from storage.home.workspace import Workspace, newest_first

HOUR = datetime.timedelta(hours=1)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "home")


def publish(workspace: Workspace, key: str, as_of: datetime.datetime | None = None) -> Guide:
    with workspace.publishing(Guide, key) as draft:
        (draft.folder / "programmes.parquet").write_text(key, encoding="utf-8")
        draft.details["as_of"] = as_of and as_of.isoformat()
    return draft.artifact


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def test_a_home_without_guides_has_no_current_one(workspace: Workspace) -> None:
    assert current_guide(workspace) is None


def test_a_guide_of_the_past_is_not_current_although_it_was_written_last(workspace: Workspace) -> None:
    present = publish(workspace, "present")
    publish(workspace, "past", now() - HOUR)
    assert current_guide(workspace) == present


def test_of_guides_of_the_past_the_latest_instant_is_current(workspace: Workspace) -> None:
    later = publish(workspace, "later", now() - HOUR)
    publish(workspace, "earlier", now() - 2 * HOUR)
    assert current_guide(workspace) == later


def test_a_guide_as_of_a_later_instant_than_the_last_ingest_is_current(workspace: Workspace) -> None:
    publish(workspace, "present")
    later = publish(workspace, "later", now())
    publish(workspace, "past", now() - HOUR)
    assert current_guide(workspace) == later


def test_an_instant_of_the_future_represents_what_was_known_at_publication(workspace: Workspace) -> None:
    publish(workspace, "future", now() + 24 * HOUR)
    present = publish(workspace, "present")
    assert current_guide(workspace) == present


def test_an_instant_has_a_zone_of_its_own(workspace: Workspace) -> None:
    east = datetime.timezone(10 * HOUR)
    later = publish(workspace, "later", now() - HOUR)
    publish(workspace, "earlier", (now() - 2 * HOUR).astimezone(east))
    assert current_guide(workspace) == later


def test_the_current_guide_is_intact(workspace: Workspace) -> None:
    before = publish(workspace, "before")
    (workspace.folder(publish(workspace, "damaged")) / "programmes.parquet").write_text(
        "gone", encoding="utf-8"
    )
    assert current_guide(workspace) == before


def test_reading_does_not_change_the_order_of_publication(workspace: Workspace) -> None:
    first, second = publish(workspace, "first"), publish(workspace, "second")
    files = sorted(workspace.home.rglob("artifact.json"))
    written = [file.read_bytes() for file in files]
    assert workspace.read(Guide, "first") == first
    assert list(newest_first(workspace, Guide)) == [second, first]
    assert list(newest_first(workspace, Guide, before="second")) == [first]
    assert current_guide(workspace) == second and [file.read_bytes() for file in files] == written


def test_published_again_is_the_newest_with_the_same_digest(workspace: Workspace) -> None:
    first = publish(workspace, "first")
    publish(workspace, "second")
    workspace.publish_again(first)
    assert current_guide(workspace) == first == workspace.read(Guide, "first")


def test_artifacts_of_older_versions_count_by_the_time_of_the_file(workspace: Workspace) -> None:
    for age, key in enumerate("abc"):
        file = workspace.folder(publish(workspace, key)) / "artifact.json"
        content = json.loads(file.read_text(encoding="utf-8"))
        del content["published_at"]
        file.write_text(json.dumps(content), encoding="utf-8")
        os.utime(file, (1_000_000 - age, 1_000_000 - age))
    assert [Path(each.path).name for each in newest_first(workspace, Guide)] == ["a", "b", "c"]
    assert current_guide(workspace) == workspace.read(Guide, "a")


@pytest.mark.parametrize("content", ["", "[1, 2]", "null", '{"details": 3}', '{"published_at": "never"}'])
def test_a_damaged_description_is_passed_over(workspace: Workspace, content: str) -> None:
    intact = publish(workspace, "intact")
    (workspace.folder(publish(workspace, "damaged")) / "artifact.json").write_text(content, encoding="utf-8")
    assert current_guide(workspace) == intact
    assert list(newest_first(workspace, Guide)) == [intact]
