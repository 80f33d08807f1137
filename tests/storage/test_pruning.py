"""The newest of each kind stay; what an unchanged night used again is new."""

import os

import pytest

from storage.artifacts import Corpus, Vectors
from storage.workspace import Workspace, prune


def publish(workspace, kind, key, age):
    with workspace.publishing(kind, key) as draft:
        (draft.folder / "data.txt").write_text(key)
    workspace.place(kind, key).with_suffix(".nonce").write_text(key)
    os.utime(workspace.place(kind, key) / "artifact.json", (1_000_000 - age, 1_000_000 - age))


def keys(workspace, kind):
    return {folder.name for folder in workspace.place(kind, "x").parent.iterdir()}


@pytest.fixture
def workspace(tmp_path):
    made = Workspace(tmp_path / "home")
    for age, key in enumerate("abcde"):
        publish(made, Corpus, key, age)
    publish(made, Vectors, "v", 99)
    return made


def test_the_newest_of_each_kind_stay(workspace):
    assert prune(workspace, 2) == 3
    assert keys(workspace, Corpus) == {"a", "a.nonce", "b", "b.nonce"} and keys(workspace, Vectors) == {
        "v",
        "v.nonce",
    }
    assert prune(workspace, 2) == 0


def test_what_was_used_again_stays(workspace):
    assert workspace.read(Corpus, "e") is not None
    prune(workspace, 1)
    assert keys(workspace, Corpus) == {"e", "e.nonce"}


def test_unfinished_work_is_left_alone(workspace):
    partial = workspace.place(Corpus, "z").with_suffix(".partial")
    partial.write_text("half")
    prune(workspace, 1)
    assert partial.exists()


def test_the_last_one_never_goes(workspace):
    with pytest.raises(ValueError, match="keep is 0"):
        prune(workspace, 0)
