"""The home: artifacts are published completely or not at all, and damage is detected."""

import datetime
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from storage.artifacts import Corpus
from storage.home.workspace import LAYOUT_VERSION, Draft, HomeError, Workspace


@pytest.fixture
def home(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "home")


def publish(home: Workspace, text: str = "one", key: str = "key") -> Corpus:
    with home.publishing(Corpus, key) as draft:
        (draft.folder / "file.txt").write_text(text, encoding="utf-8")
        (draft.folder / "deep").mkdir()
        (draft.folder / "deep" / "er.txt").write_text("deeper", encoding="utf-8")
        draft.counts["titles"] = len(text)
        draft.details["words"] = [text]
    return draft.artifact


def test_published_is_read_again(home: Workspace):
    made = publish(home)
    assert (
        made
        == home.read(Corpus, "key")
        == Corpus(path="artifacts/corpus/key", digest=made.digest, counts={"titles": 3})
    )
    assert (home.folder(made) / "file.txt").read_text(encoding="utf-8") == "one"
    assert home.details(made) == {"words": ["one"]}
    assert home.artifact_folder(Corpus, "key") == home.folder(made)


def test_the_digest_is_that_of_names_and_contents(home: Workspace):
    digests = [publish(home, text, key).digest for text, key in (("one", "a"), ("one", "b"), ("two", "c"))]
    assert digests[0] == digests[1] != digests[2]
    with home.publishing(Corpus, "d") as draft:
        (draft.folder / "other.txt").write_text("one", encoding="utf-8")
        (draft.folder / "deep").mkdir()
        (draft.folder / "deep" / "er.txt").write_text("deeper", encoding="utf-8")
    assert draft.artifact.digest != digests[0]


def test_a_writer_can_name_the_digest_itself(home: Workspace):
    with home.publishing(Corpus, "key") as draft:
        draft.digest = "ab" * 32
    assert home.read(Corpus, "key") == draft.artifact and draft.artifact.digest == "ab" * 32


def test_an_exception_keeps_the_published_artifact(home: Workspace):
    before = publish(home, "old")
    for key in ("key", "new"):
        with pytest.raises(FileNotFoundError), home.publishing(Corpus, key) as draft:
            (draft.folder / "missing" / "file.txt").write_text("new", encoding="utf-8")
    assert home.read(Corpus, "key") == before and home.read(Corpus, "new") is None
    assert (home.folder(before) / "file.txt").read_text(encoding="utf-8") == "old"
    assert [path.name for path in home.artifact_folder(Corpus, "key").parent.iterdir()] == ["key"]


def test_publishing_again_replaces_the_complete_folder(home: Workspace):
    publish(home, "old")
    with home.publishing(Corpus, "key") as draft:
        (draft.folder / "only.txt").write_text("new", encoding="utf-8")
    assert sorted(path.name for path in home.folder(draft.artifact).iterdir()) == [
        "artifact.json",
        "only.txt",
    ]
    assert [path.name for path in home.artifact_folder(Corpus, "key").parent.iterdir()] == ["key"]


def test_artifact_json_is_written_last(home: Workspace):
    with home.publishing(Corpus, "key") as draft:
        assert not (draft.folder / "artifact.json").exists() and draft.folder.name.endswith(".tmp")
    content = json.loads((draft.folder / "artifact.json").read_text(encoding="utf-8"))
    assert datetime.datetime.fromisoformat(content.pop("published_at")).tzinfo == datetime.UTC
    assert content == {
        "kind": "Corpus",
        "digest": draft.artifact.digest,
        "counts": {},
        "details": {},
        "made_of": {},
        "files": {},
    }
    assert draft.folder == home.folder(draft.artifact)


def test_a_draft_is_no_artifact(tmp_path: Path):
    with pytest.raises(RuntimeError, match="Corpus is not published before its with block ends"):
        _ = Draft(Corpus, tmp_path).artifact


DAMAGE = {
    "one bit": lambda folder: (folder / "file.txt").write_text("onf", encoding="utf-8"),
    "length": lambda folder: (folder / "file.txt").write_text("one more", encoding="utf-8"),
    "missing file": lambda folder: (folder / "deep" / "er.txt").unlink(),
    "no artifact.json": lambda folder: (folder / "artifact.json").unlink(),
    "half of artifact.json": lambda folder: os.truncate(folder / "artifact.json", 40),
    "other JSON": lambda folder: (folder / "artifact.json").write_text("[1, 2]", encoding="utf-8"),
    "no files": lambda folder: (folder / "artifact.json").write_text('{"files": null}', encoding="utf-8"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_artifact_is_not_read(home: Workspace, damage: Callable[[Path], object]):
    damage(home.folder(publish(home)))
    assert home.read(Corpus, "key") is None


def test_a_missing_artifact_is_an_error_with_a_remedy(home: Workspace):
    with pytest.raises(
        HomeError, match=r"Corpus artifacts/corpus/gone is not in .*home. Run `guidespace nightly` again"
    ):
        home.folder(Corpus(path="artifacts/corpus/gone", digest="00"))


def test_a_home_is_made_and_opened_again(tmp_path: Path):
    Workspace(tmp_path / "deep" / "home")
    assert json.loads((tmp_path / "deep" / "home" / "home.json").read_text(encoding="utf-8")) == {
        "layout_version": LAYOUT_VERSION,
        "zone": "UTC",
    }
    Workspace(tmp_path / "deep" / "home", create=False)
    assert [path.name for path in (tmp_path / "deep" / "home").iterdir()] == ["home.json"]


def test_readers_do_not_make_homes(tmp_path: Path):
    with pytest.raises(
        HomeError, match=r"is not a GuideSpace home \(no home\.json\)\. Run `guidespace nightly` first"
    ):
        Workspace(tmp_path / "none", create=False)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("version", [0, LAYOUT_VERSION + 1, "1", None])
def test_another_layout_is_refused(home: Workspace, version: object):
    (home.home / "home.json").write_text(json.dumps({"layout_version": version}), encoding="utf-8")
    problem = rf"has layout version {version}, expected version {LAYOUT_VERSION}\. "
    with pytest.raises(HomeError, match=problem + "Use the GuideSpace version that made it, or name"):
        Workspace(home.home)


@pytest.mark.parametrize("content", ["", "{", "[]", "3", "{}", "null"])
def test_a_damaged_home_json_is_an_error(home: Workspace, content: str):
    (home.home / "home.json").write_text(content, encoding="utf-8")
    with pytest.raises(HomeError, match=r"home\.json is damaged"):
        Workspace(home.home)


def test_a_file_is_no_home(tmp_path: Path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(HomeError, match="is a file, expected a folder"):
        Workspace(tmp_path / "file")
    with pytest.raises(HomeError, match=r"cannot create a home in .*file/home \(Not a directory\)"):
        Workspace(tmp_path / "file" / "home")


def test_a_tilde_is_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Workspace("~/guide").home == tmp_path / "guide"
