"""Headers of requests, tested with servers on loopback that answer 403 to other headers."""

import logging
import os
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from guides import guide, read, rows
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.feeds import FeedError
from tasks.ingest.sources.headers import CHANGE_PATTERN, request_headers
from tests.guide_server import Server, serve_guide

SECRET = "Zk9vLq7x"


@pytest.fixture
def server() -> Iterator[Server]:
    with serve_guide(guide(programmes=3)) as server:
        yield server


def test_user_agent(tmp_path: Path, server) -> None:
    server.wanted = {"User-Agent": f"GuideSpace/{version('guidespace')}"}
    read(tmp_path, server.url)
    server.wanted = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64)"}
    with pytest.raises(FeedError, match="the server answered 403 Forbidden"):
        read(tmp_path, server.url)
    read(tmp_path, server.url, user_agent="Mozilla/5.0 (X11; Linux x86_64)")
    assert [request["user-agent"][:3] for request in server.requests] == ["Gui", "Gui", "Moz"]


def test_headers_by_source(tmp_path: Path, server, monkeypatch) -> None:
    monkeypatch.setenv("MY_TOKEN", SECRET)
    server.wanted = {"Authorization": f"Bearer {SECRET}", "Accept-Language": "de", "User-Agent": "tv/1"}
    entries = ("*/guide.xml=Authorization: Bearer env:MY_TOKEN", "Accept-Language: de", "user-agent: tv/1")
    read(tmp_path, server.url, headers=entries, user_agent="other")
    assert rows(tmp_path, "SELECT count(*) FROM programmes") == [(3,)]
    with pytest.raises(FeedError, match="403"):
        read(tmp_path, server.url, headers=("*/other.xml=Authorization: Bearer env:MY_TOKEN", *entries[1:]))
    assert "authorization" not in server.requests[-1]


def test_secrets_are_not_sent_to_other_hosts(tmp_path: Path, server, monkeypatch) -> None:
    monkeypatch.setenv("MY_TOKEN", SECRET)
    with serve_guide(guide(programmes=3)) as other:
        server.elsewhere = other.url
        read(tmp_path, server.url, headers=("X-Api-Key: env:MY_TOKEN",), user_agent="tv/1")
    assert server.requests[0]["x-api-key"] == SECRET
    assert "x-api-key" not in other.requests[0] and other.requests[0]["user-agent"] == "tv/1"


def test_http_inside_another_url_has_only_plain_headers(tmp_path: Path, server, monkeypatch) -> None:
    pytest.importorskip("aiohttp", reason="aiohttp is missing, by which fsspec reads http")
    monkeypatch.setenv("MY_TOKEN", SECRET)
    with pytest.raises(FeedError):  # the server has no zip
        read(tmp_path, f"zip://a.xml::{server.url}", headers=("X-Key: env:MY_TOKEN",), user_agent="tv/1")
    assert server.requests[0]["user-agent"] == "tv/1" and "x-key" not in server.requests[0]


def test_logs_and_messages_contain_no_secret(tmp_path: Path, server, monkeypatch, caplog) -> None:
    monkeypatch.setenv("MY_TOKEN", SECRET)
    with caplog.at_level(logging.DEBUG):
        read(tmp_path, server.url, headers=("X-Api-Key: env:MY_TOKEN",))
        server.wanted = {"X-Api-Key": "another"}
        with pytest.raises(FeedError) as refused:
            read(tmp_path, server.url, headers=("X-Api-Key: env:MY_TOKEN",))
        monkeypatch.setenv("MY_TOKEN", f"{SECRET}\nHost: x")
        with pytest.raises(
            FeedError, match="MY_TOKEN of the header x-api-key contains characters"
        ) as invalid:
            read(tmp_path, server.url, headers=("X-Api-Key: env:MY_TOKEN",))
    assert SECRET not in caplog.text + str(refused.value) + str(invalid.value)
    for file in (path for path in tmp_path.rglob("*") if path.is_file()):
        assert SECRET.encode() not in file.read_bytes()
    assert os.environ["PATH"] not in repr(request_headers("", ("X-Api-Key: Word env:PATH",), "a"))


def test_an_unset_variable_fails_only_its_feed(tmp_path: Path, server) -> None:
    (tmp_path / "local.xml").write_bytes(guide(programmes=2))
    feeds = server.url, tmp_path / "local.xml"
    outcomes = read(tmp_path, *feeds, headers=("http*=X-Api-Key: env:NOWHERE_SET",))
    assert len(outcomes) == 1 and server.requests == []
    with pytest.raises(FeedError, match="NOWHERE_SET of the header x-api-key is not set"):
        read(tmp_path, server.url, headers=("X-Api-Key: env:NOWHERE_SET",))


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (f"Authorization: Bearer {SECRET}", "the entry for Authorization is not as expected"),
        (f"Cookie: session={SECRET}", "Cookie"),
        (f"X-Api-Key: {SECRET} env:MY_TOKEN", "X-Api-Key"),
        (f"*/a.xml=X-Api-Key: {SECRET}", "X-Api-Key"),
        (f"X-Api-Key: {SECRET}=User-Agent: x", "X-Api-Key"),
        (SECRET, r"the entry for \(no name\)"),
        ("Host: env:MY_HOST", "Host is set by GuideSpace"),
    ],
)
def test_secrets_in_settings_are_refused_and_not_shown(entry: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as refused:
        IngestSettings(headers=(entry,))
    assert SECRET not in str(refused.value)
    schema = TypeAdapter(IngestSettings).json_schema()["properties"]["headers"]["items"]["pattern"]
    assert problem.startswith("Host") or not _matches(schema, entry)
    assert problem.startswith("Host") or not _matches(
        CHANGE_PATTERN, f'ingest.headers=["Accept: */*", "{entry}"]'
    )


@pytest.mark.parametrize(
    "entry", ["Accept: */*", "*/a?x=1=User-Agent: tv/1 (X11; a=b)", "env:A=X-Key: env:B_2"]
)
def test_harmless_headers_are_accepted(entry: str) -> None:
    IngestSettings(headers=(entry,))
    assert _matches(CHANGE_PATTERN, f'ingest.headers=["{entry}", "Accept-Language: de"]')


def test_harmless_changes_are_accepted() -> None:
    for change in ("train.epochs=5", "ingest.headers=[]", 'ingest.zones=["*=CET"]', "ingest.user_agent=tv/1"):
        assert _matches(CHANGE_PATTERN, change)
    assert not _matches(CHANGE_PATTERN, f'ingest={{"headers": ["Authorization: {SECRET}"]}}')


def _matches(pattern: str, text: str) -> bool:
    return Draft202012Validator({"pattern": pattern}).is_valid(text)
