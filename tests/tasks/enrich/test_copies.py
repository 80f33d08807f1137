"""Copies of feeds are renewed only if something has changed, and remain if a feed cannot be fetched."""

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from storage.catalogue.feeds import read_status
from storage.home.corrections import write_corrections
from storage.home.workspace import Workspace
from tasks.enrich.copies import CopyWriter, EnrichedCopy
from tasks.enrich.settings import EnrichOptions
from tasks.enrich.task import fill
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.feeds import NamedFeed
from tests.guide_server import Server, serve_guide
from tests.tasks.enrich.guides import BAKING, NEW, programme

READING = IngestSettings(private_addresses=True)
FIRST, SECOND = (f"<tv>{programme(title)}</tv>".encode() for title in (BAKING, NEW))


@pytest.fixture
def copies(model: Path, tmp_path: Path) -> CopyWriter:
    return CopyWriter(Workspace(tmp_path / "home").home, READING, EnrichOptions(), model)


@pytest.fixture
def server():
    with serve_guide(FIRST) as server:
        server.etag = '"1"'
        yield server


def content(copy: EnrichedCopy) -> bytes:
    return gzip.decompress(Path(copy.file).read_bytes())


def conditions(server: Server) -> list[str | None]:
    return [request.get("if-none-match") for request in server.requests]


def test_an_unchanged_feed_is_neither_fetched_nor_filled_again(copies: CopyWriter, server: Server) -> None:
    (first,) = copies.update([server.url])
    (second,) = copies.update([server.url])
    assert not first.unchanged and second == replace(first, unchanged=True)
    assert conditions(server) == [None, '"1"']
    server.content, server.etag = SECOND, '"2"'
    (third,) = copies.update([server.url])
    assert not third.unchanged and NEW.encode() in content(third)


@pytest.mark.parametrize(
    "change",
    [
        lambda copies: replace(copies, options=EnrichOptions(mark=True)),
        lambda copies: replace(copies, ingest_settings=replace(READING, zones=("*=Europe/Paris",))),
        lambda copies: write_corrections(copies.home, []) or copies,
    ],
)
def test_other_options_zones_or_corrections_renew_a_copy(
    copies: CopyWriter, server: Server, change: Callable[[CopyWriter], CopyWriter]
) -> None:
    copies.update([server.url])
    (renewed,) = change(copies).update([server.url])
    assert not renewed.unchanged and conditions(server) == [None, None]


def test_a_feed_that_fails_leaves_its_last_copy(copies: CopyWriter, server: Server) -> None:
    (first,) = copies.update([server.url])
    server.wanted, server.etag = {"X-Token": "x"}, '"2"'
    absent = str(copies.home / "missing.xml")
    results = {result.source: result for result in copies.update([server.url, absent])}
    failed, missing = results[server.url], results[absent]
    assert "403" in failed.error and failed.error.endswith("its last copy remains")
    assert failed.file == first.file and content(failed) == content(first)
    assert "no such file" in missing.error and not missing.file
    unopened = NamedFeed(location="", source=server.url, problem="no such block")
    (failed,) = copies.update([unopened])
    assert failed.error.startswith(f"{server.url}: no such block") and failed.file == first.file


def test_a_feed_that_is_replaced_by_a_page_leaves_its_last_copy(copies: CopyWriter, server: Server) -> None:
    (first,) = copies.update([server.url])
    server.content, server.etag = b"<html>Maintenance</html>", '"2"'
    changed = replace(copies, options=EnrichOptions(mark=True))
    (page,) = changed.update([server.url])
    assert "not XMLTV" in page.error and page.error.endswith("its last copy remains")
    assert page.file == first.file and content(page) == content(first)
    server.wanted = {"X-Token": "x"}
    (failed,) = changed.update([server.url])
    assert "403" in failed.error and failed.file == first.file
    server.content, server.wanted = FIRST, {}
    (renewed,) = changed.update([server.url])  # although the feed equals that of the last copy
    assert not (renewed.error or renewed.unchanged) and b"<!-- guidespace" in content(renewed)
    assert conditions(server) == [None] * 4


def test_a_removed_or_damaged_state_fetches_again(copies: CopyWriter, server: Server) -> None:
    (first,) = copies.update([server.url])
    (state,) = copies.home.glob("enriched/*.json")
    for damage in ("{", "[]", '{"copies": [{}]}'):
        state.write_text(damage)
        copies.update([server.url])
    Path(first.file).unlink()
    (renewed,) = copies.update([server.url])
    assert conditions(server) == [None] * 5 and content(renewed)


def test_refresh_reads_a_feed_that_only_a_copy_has(
    copies: CopyWriter, server: Server, without_run: Callable
) -> None:
    copies.update([server.url])  # as `guidespace guide` does, which does not write to the catalogue
    assert read_status(copies.home)["programmes"] == 0
    arguments = str(copies.home), [server.url], READING, copies.options, str(copies.model_folder)
    without_run(fill, *arguments)
    status = read_status(copies.home)
    assert status["programmes"] == 1 and [feed["source"] for feed in status["feeds"]] == [server.url]
    (again,) = without_run(fill, *arguments)
    assert again.unchanged and conditions(server) == [None, None, '"1"']


def test_a_refresh_continues_if_the_only_changed_feed_is_bad(
    copies: CopyWriter, server: Server, without_run: Callable
) -> None:
    with serve_guide(SECOND) as other:
        arguments = str(copies.home), [server.url, other.url], READING, copies.options
        without_run(fill, *arguments, str(copies.model_folder))
        other.content = b"<html/>"
        results = without_run(fill, *arguments, str(copies.model_folder))
    by_source = {result.source: result for result in results}
    assert by_source[server.url].unchanged and not by_source[server.url].error
    assert "not XMLTV" in by_source[other.url].error and NEW.encode() in content(by_source[other.url])
