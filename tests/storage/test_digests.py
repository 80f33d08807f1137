"""Digests of files, which are computed again only if a file has changed."""

import hashlib
import os
from pathlib import Path

import pytest

from storage.digests import ABSENT, content_digest


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def written(path: Path, content: bytes, changed: float) -> Path:
    path.write_bytes(content)
    os.utime(path, (changed, changed))
    return path


def test_the_digest_is_the_sha256_of_the_file(tmp_path: Path):
    assert content_digest(written(tmp_path / "a", b"vectors", 1e9)) == hashlib.sha256(b"vectors").hexdigest()
    assert content_digest(tmp_path / "none") == ABSENT


def test_an_unchanged_file_is_read_once(tmp_path: Path, cache: Path):
    path = written(tmp_path / "a", b"vectors", 1e9)
    digest = content_digest(path)
    (note,) = cache.rglob("*.json")
    note.write_text(note.read_text(encoding="utf-8").replace(digest, "remembered"), encoding="utf-8")
    assert content_digest(path) == "remembered"
    assert content_digest(written(path, b"VECTORS", 1e9 + 1)) == hashlib.sha256(b"VECTORS").hexdigest()
    note.write_text("damaged", encoding="utf-8")
    assert content_digest(path) == hashlib.sha256(b"VECTORS").hexdigest()


def test_the_digest_of_a_recent_file_is_not_cached(tmp_path: Path, cache: Path):
    path = tmp_path / "a"
    path.write_bytes(b"vectors")
    content_digest(path)
    assert not list(cache.rglob("*.json"))


def test_the_digest_of_a_folder_covers_names_and_contents(tmp_path: Path):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        (folder / "deep").mkdir(parents=True)
        written(folder / "deep" / "a", b"vectors", 1e9)
    assert content_digest(one) == content_digest(other)
    (other / "deep" / "a").rename(other / "deep" / "b")
    assert content_digest(one) != content_digest(other)


def test_without_a_cache_a_file_is_read_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    path = written(tmp_path / "a", b"vectors", 1e9)
    assert content_digest(path) == content_digest(path) == hashlib.sha256(b"vectors").hexdigest()
