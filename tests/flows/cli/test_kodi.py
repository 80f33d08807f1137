"""Kodi shows the merged guide for all channels of a playlist, and colours what is in the table of genres."""

import datetime
import gzip

import pytest
from lxml import etree

from tests.flows.command import SAMPLE, guidespace
from tests.kodi import COLOURED, missing_packages, playlist_of, read_with_kodi, shift_days

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(missing_packages()), reason=f"needs Kodi (apt install {' '.join(missing_packages())})"
    ),
]


def test_kodi_shows_and_colours_the_merged_guide(night, tmp_path):
    """Each of two feeds has every second channel; the playlist has the channels under other ids."""
    today = datetime.datetime.now(datetime.UTC).date()
    guide = etree.fromstring(shift_days(gzip.decompress(SAMPLE.read_bytes()), today))
    names = {channel.get("id"): channel.findtext("display-name") for channel in guide.findall("channel")}
    ids = [*names]
    for number in range(2):
        part, left_out = etree.fromstring(etree.tostring(guide)), {*ids[number::2]}
        for element in [*part]:
            if {element.get("id"), element.get("channel")} & left_out:
                part.remove(element)
        (tmp_path / f"{number}.xml").write_bytes(etree.tostring(part))
    playlist = playlist_of((f"tv-{number}", names[id_]) for number, id_ in enumerate(ids))
    (tmp_path / "tv.m3u").write_text(playlist, encoding="utf-8")
    out, genres = tmp_path / "out.xml", tmp_path / "out.genres.xml"
    options = ["--playlist", tmp_path / "tv.m3u", "--for", "kodi", "--home", night[0]]
    feeds = ["--feed", tmp_path / "0.xml", "--feed", tmp_path / "1.xml"]
    done = guidespace("guide", out, *feeds, *options)
    assert done.returncode == 0 and f"of {len(ids)} channels from 2 feeds" in done.stdout, done.stderr
    texts = {genre.text for genre in etree.parse(genres).findall("genre")}
    coloured, others = set(), set()
    for each in etree.parse(out).findall("programme"):
        words = {piece for name in each.findall("category") for piece in (name.text or "").split(",")}
        (coloured if words & texts else others).add(each.findtext("title"))
    (tmp_path / "kodi").mkdir()
    rows = read_with_kodi(tmp_path / "kodi", out, playlist, genres)
    assert {row.channel for row in rows} == {*names.values()}
    shown = {row.title for row in rows if row.genre in COLOURED}
    plain = {row.title for row in rows if row.genre not in COLOURED}
    assert len(rows) > 1000 and len(shown) > 0.95 * len(shown | plain)
    assert plain <= others and shown <= coloured
