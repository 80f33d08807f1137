"""The current guide is the one with the latest instant."""

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


@pytest.mark.parametrize(
    ("hours", "current"),  # from now to the instants of guides in the order of publication; None: no as_of
    [
        ([], None),
        ([None, -1], 0),  # a guide of the past, although it was written last
        ([-1, -2], 0),
        ([None, 0, -1], 1),
        ([24, None], 1),  # a future instant represents the time of publication
    ],
)
def test_the_guide_with_the_latest_instant_is_current(
    workspace: Workspace, hours: list[int | None], current: int | None
) -> None:
    guides = [
        publish(workspace, f"guide {number}", None if hour is None else now() + hour * HOUR)
        for number, hour in enumerate(hours)
    ]
    assert current_guide(workspace) == (None if current is None else guides[current])


def test_instants_of_different_zones_are_compared(workspace: Workspace) -> None:
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
