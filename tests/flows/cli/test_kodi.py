"""Kodi colours every programme whose categories are in the table of genres that ``enrich`` writes."""

import datetime
import gzip

import pytest
from lxml import etree

from tests.flows.command import SAMPLE, guidespace
from tests.kodi import COLOURED, missing_packages, read_with_kodi, shift_days

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(missing_packages()), reason=f"needs Kodi (apt install {' '.join(missing_packages())})"
    ),
]


def test_kodi_colours_the_programmes(night, tmp_path):
    today = datetime.datetime.now(datetime.UTC).date()
    (tmp_path / "in.xml").write_bytes(shift_days(gzip.decompress(SAMPLE.read_bytes()), today))
    out, genres = tmp_path / "out.xml", tmp_path / "out.genres.xml"
    done = guidespace("enrich", tmp_path / "in.xml", out, "--home", night[0], "--for", "kodi")
    assert done.returncode == 0 and f"The table of genres for Kodi: {genres}" in done.stdout, done.stderr
    texts = {genre.text for genre in etree.parse(genres).findall("genre")}
    guide = etree.parse(out)
    channels = [channel.get("id") for channel in guide.findall("channel")]
    coloured, others = set(), set()
    for each in guide.findall("programme"):
        words = {piece for name in each.findall("category") for piece in (name.text or "").split(",")}
        (coloured if words & texts else others).add(each.findtext("title"))
    (tmp_path / "home").mkdir()
    rows = read_with_kodi(tmp_path / "home", out, channels, genres)
    shown = {title for title, genre in rows if genre in COLOURED}
    plain = {title for title, genre in rows if genre not in COLOURED}
    assert len(rows) > 1000 and len(shown) > 0.95 * len(shown | plain)
    assert plain <= others and shown <= coloured
