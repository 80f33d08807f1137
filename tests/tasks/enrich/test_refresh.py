"""The task of the flow refresh reads feeds into the catalogue and writes enriched copies."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from storage.catalogue.feeds import read_status
from tasks.enrich.copies import file_name
from tasks.enrich.enrich import read_guide
from tasks.enrich.output import genres_file
from tasks.enrich.settings import EnrichOptions, make_players
from tasks.enrich.source import open_source
from tasks.enrich.task import fill
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.feeds import FeedError
from tests.guide_server import serve_guide
from tests.tasks.enrich.guides import ADDED, BAKING, NEW, programme


def test_feeds_are_filled_and_a_bad_one_stops_no_other(model, tmp_path: Path, without_run) -> None:
    content = f"<tv>{programme(BAKING)}{programme(NEW, start='20250302200000')}</tv>".encode()
    good, bad, home = tmp_path / "uk.xml.gz", tmp_path / "bad.xml", tmp_path / "home"
    good.write_bytes(gzip.compress(content))
    bad.write_text("<html/>", encoding="utf-8")
    inputs = str(home), [str(good), str(bad)], IngestSettings(), EnrichOptions(vocabulary="etsi"), str(model)
    filled = without_run(fill, *inputs)
    by_source = {each.source: each for each in filled}
    assert "XML, but not XMLTV" in by_source[str(bad)].error and not by_source[str(bad)].file
    out = Path(by_source[str(good)].file)
    assert out.parent == home / "enriched" and out.name == file_name(str(good))
    written = gzip.decompress(out.read_bytes())
    assert ADDED.sub(b"", written) == content and written.count(b"<category>") == 4
    assert any("filled by prediction" in line for line in by_source[str(good)].report)
    assert read_status(home)["programmes"] == 2
    assert [path.name for path in home.iterdir() if path.name.startswith("refresh-")] == []
    again = without_run(fill, *inputs)  # an unchanged feed is written again, and not stored twice
    assert {each.file for each in again} == {each.file for each in filled}
    assert read_status(home)["programmes"] == 2
    with pytest.raises(FeedError, match="not XMLTV"):
        without_run(fill, str(home), [str(bad)], *inputs[2:])


def test_players_get_what_they_need(model, tmp_path: Path, without_run) -> None:
    (tmp_path / "uk.xml").write_text(f"<tv>{programme(BAKING)}</tv>", encoding="utf-8")
    options = EnrichOptions(players=make_players(["kodi", "tvheadend"]))
    inputs = str(tmp_path / "home"), [str(tmp_path / "uk.xml")], IngestSettings(), options, str(model)
    (filled,) = without_run(fill, *inputs)
    written = gzip.decompress(Path(filled.file).read_bytes())
    assert written.startswith(b"<?xml") and b"<category>Cooking</category>" in written
    genres = genres_file(filled.file)
    assert f"The table of genres for Kodi: {genres}" in filled.report
    assert b'<genre genreId="0xA5">COOKERY</genre>' in genres.read_bytes()


def test_episode_numbers_from_another_feed(model, tmp_path: Path, without_run) -> None:
    number = '<episode-num system="xmltv_ns">0.4.</episode-num>'
    with_number, unknown = (
        programme(BAKING, f"<sub-title>Bread</sub-title>{numbers}") for numbers in (number, "")
    )
    more = programme(BAKING, f"<sub-title>Cake</sub-title>{number.replace('4', '5')}", start="20250302200000")
    for name, one in (("known", with_number), ("unknown", unknown.replace("one", "two"))):
        (tmp_path / f"{name}.xml").write_text(f"<tv>{one}{more}</tv>", encoding="utf-8")
    feeds = [str(tmp_path / f"{name}.xml") for name in ("known", "unknown")]
    options = EnrichOptions(episodes=True)
    filled = without_run(fill, str(tmp_path / "home"), feeds, IngestSettings(), options, str(model))
    for each in filled:
        assert (number + "</programme>").encode() in gzip.decompress(Path(each.file).read_bytes())


def test_a_refresh_reads_times_in_the_zones_of_its_settings(
    model, tmp_path: Path, without_run, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = f"<tv>{programme(NEW)}</tv>".replace(" +0000", "")
    (tmp_path / "fr.xml").write_text(content, encoding="utf-8")
    hours: list[str] = []

    def read(*arguments):
        survey, titles = read_guide(*arguments)
        hours.extend(token for token in titles.contexts(np.arange(1))[0] if token.startswith("hour:"))
        return survey, titles

    monkeypatch.setattr("tasks.enrich.copies.read_guide", read)
    reading = IngestSettings(zones=("*/fr.xml=Europe/Paris",))
    feeds = [str(tmp_path / "fr.xml")]
    without_run(fill, str(tmp_path / "home"), feeds, reading, EnrichOptions(), str(model))
    assert hours == ["hour:20"]


def test_file_names_are_safe_and_stable() -> None:
    assert file_name("https://a.example/x/guide.xml.gz").startswith("guide-")
    assert file_name("https://a.example/guide.xml") != file_name("https://b.example/guide.xml")
    assert file_name("/x/all.zip!uk/day 1.xml.gz").startswith("day_1-")
    assert "/" not in file_name("env:SECRET") and file_name("env:SECRET").endswith(".xml.gz")


def test_requests_of_enrich_and_refresh_have_the_headers_of_the_settings(
    model, tmp_path, without_run
) -> None:
    settings = IngestSettings(private_addresses=True, user_agent="tv/1")
    with serve_guide(f"<tv>{programme(BAKING)}</tv>".encode()) as server:
        server.wanted = {"User-Agent": "tv/1"}
        with open_source(server.url, tmp_path, settings) as source:
            assert b"".join(source.pieces()) == server.content
        inputs = str(tmp_path / "home"), [server.url], settings, EnrichOptions(), str(model)
        (filled,) = without_run(fill, *inputs)
    assert not filled.error and len(server.requests) == 2
