"""The id of a home, which a moved home keeps and a copy does not."""

import json
import shutil

from storage.home.identity import make_home_id, read_home_id
from storage.home.marker import read_marker
from storage.home.workspace import LAYOUT_VERSION, Workspace


def test_a_home_keeps_its_id(tmp_path):
    home = tmp_path / "my home"
    assert read_home_id(home) == "" and not home.exists()
    own = make_home_id(home)
    assert own.startswith("my_home-") and len(own) == len("my_home-") + 8
    assert make_home_id(home) == read_home_id(home) == own != make_home_id(tmp_path / "other" / "my home")
    assert json.loads((home / "home.json").read_text(encoding="utf-8"))["layout_version"] == LAYOUT_VERSION
    assert Workspace(home).home == home  # what was added to home.json leaves it a home


def test_a_home_of_an_older_version_is_given_one(tmp_path):
    (tmp_path / "home.json").write_text(f'{{"layout_version": {LAYOUT_VERSION}}}', encoding="utf-8")
    assert read_home_id(tmp_path) == ""
    assert make_home_id(tmp_path) == read_home_id(tmp_path) != ""


def test_a_home_keeps_its_id_when_it_is_moved_twice(tmp_path):
    own = make_home_id(tmp_path / "first")
    second = (tmp_path / "first").rename(tmp_path / "second")
    assert read_home_id(second) == make_home_id(second) == own
    assert read_marker(second)["folder"] == str(second)


def test_a_copied_home_gets_a_new_id(tmp_path):
    own = make_home_id(tmp_path / "first")
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "first", copy)
    assert read_home_id(copy) == ""
    assert make_home_id(copy).startswith("copy-") and read_home_id(tmp_path / "first") == own


def test_a_second_path_to_a_home_is_no_copy(tmp_path):
    own = make_home_id(tmp_path / "first")
    (tmp_path / "link").symlink_to(tmp_path / "first")
    assert read_home_id(tmp_path / "link") == own
