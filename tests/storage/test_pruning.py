"""Removal of old artifacts; artifacts that were used again count as new."""

import os

import pytest

from storage.artifacts import Corpus, Guide, Vectors
from storage.home.guides import current_guide
from storage.home.retention import prune_artifacts, prune_downloaded_models
from storage.home.workspace import Workspace, newest_first


def publish(workspace, kind, key, age):
    with workspace.publishing(kind, key) as draft:
        (draft.folder / "data.txt").write_text(key, encoding="utf-8")
    for path in (
        workspace.artifact_folder(kind, key) / "artifact.json",
        workspace.artifact_folder(kind, key),
    ):
        os.utime(path, (1_000_000 - age, 1_000_000 - age))


def keys(workspace, kind):
    return {folder.name for folder in workspace.artifact_folder(kind, "x").parent.iterdir()}


@pytest.fixture
def workspace(tmp_path):
    made = Workspace(tmp_path / "home")
    for age, key in enumerate("abcde"):
        publish(made, Corpus, key, age)
    publish(made, Vectors, "v", 99)
    return made


def test_the_newest_of_each_kind_stay(workspace):
    removed = prune_artifacts(workspace, 2)
    assert removed.count == 3 and removed.bytes > 0
    assert keys(workspace, Corpus) == {"a", "b"} and keys(workspace, Vectors) == {"v"}
    assert prune_artifacts(workspace, 2).count == 0


def test_artifacts_used_again_stay(workspace):
    assert workspace.read(Corpus, "e") is not None
    prune_artifacts(workspace, 1)
    assert keys(workspace, Corpus) == {"e"}


def test_listing_artifacts_does_not_mark_them_as_used(workspace):
    assert len(list(newest_first(workspace, Corpus))) == 5
    prune_artifacts(workspace, 2)
    assert keys(workspace, Corpus) == {"a", "b"}


def test_the_current_guide_is_marked_as_used(workspace):
    publish(workspace, Guide, "earlier", age=0)
    publish(workspace, Guide, "current", age=1)
    assert current_guide(workspace) is not None
    prune_artifacts(workspace, 1)
    assert keys(workspace, Guide) == {"current"}


def test_a_partial_training_is_removed_if_enough_complete_ones_are_newer(workspace):
    half = workspace.artifact_folder(Corpus, "half").with_suffix(".partial")
    half.mkdir()
    os.utime(half, (1_000_000 - 2.5, 1_000_000 - 2.5))  # older than a, b and c
    assert prune_artifacts(workspace, 4).count == 1 and half.exists()
    assert prune_artifacts(workspace, 3).count == 2 and not half.exists()
    assert keys(workspace, Corpus) == {"a", "b", "c"}


def test_a_dry_run_reports_the_same_and_removes_nothing(workspace):
    told = prune_artifacts(workspace, 2, dry_run=True)
    assert len(keys(workspace, Corpus)) == 5
    assert told == prune_artifacts(workspace, 2)


def test_pinned_artifacts_and_their_inputs_stay(workspace):
    prune_artifacts(workspace, 1, [workspace.artifact_folder(Corpus, "d")])
    assert keys(workspace, Corpus) == {"a", "d"}


def test_a_killed_removal_leaves_nothing_that_counts(workspace, monkeypatch):
    def killed(folder):
        raise KeyboardInterrupt

    monkeypatch.setattr("storage.atomic.shutil.rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        prune_artifacts(workspace, 4)
    monkeypatch.undo()
    assert workspace.read(Corpus, "e") is None
    with workspace.writing("the next"):
        pass
    assert keys(workspace, Corpus) == {*"abcd"}


def test_only_the_current_downloaded_champion_remains(workspace):
    for digest in ("a" * 16, "b" * 16):
        (workspace.home / "champions" / digest).mkdir(parents=True)
        (workspace.home / "champions" / digest / "model").write_text("12345", encoding="utf-8")
    (workspace.home / "champions" / "tmpdownload").mkdir()
    removed = prune_downloaded_models(workspace, workspace.home / "champions" / ("b" * 16) / "artifacts")
    assert (removed.count, removed.bytes) == (1, 5)
    assert {one.name for one in (workspace.home / "champions").iterdir()} == {"b" * 16, "tmpdownload"}


def test_unfinished_work_is_left_alone(workspace):
    partial = workspace.artifact_folder(Corpus, "z").with_suffix(".partial")
    partial.write_text("half", encoding="utf-8")
    prune_artifacts(workspace, 1)
    assert partial.exists()


def test_keeping_no_artifact_is_refused(workspace):
    with pytest.raises(ValueError, match="keep must be at least 1, got 0"):
        prune_artifacts(workspace, 0)
