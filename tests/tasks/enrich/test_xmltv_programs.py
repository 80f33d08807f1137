"""Programs of Debian's xmltv-util read a guide that is enriched for each player."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from lxml import etree

from tasks.enrich.players import PLAYERS
from tasks.enrich.settings import make_players
from tests.tasks.enrich.guides import BAKING, NEW, programme
from tests.tasks.enrich.test_bytes import LONG, guide

PROGRAMS = ("tv_cat", "tv_grep", "tv_sort", "tv_to_text")
pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, PROGRAMS)), reason="needs xmltv-util (apt install xmltv-util)"
)


@pytest.fixture(params=[*PLAYERS, "all"])
def enriched(request: pytest.FixtureRequest, fill: Callable, tmp_path: Path) -> Path:
    """A guide that is enriched for a player, or for all of them."""
    film = programme("Odd one", "<category>Spielfilm</category>", channel="two")
    long = re.sub(r"<!\[CDATA.*\]\]>", "", LONG.format(title=BAKING, category=""))  # the programs skip CDATA
    titles = long, programme(NEW, channel="three"), film
    players = PLAYERS if request.param == "all" else [request.param]
    written, report = fill(guide(*titles).encode(), players=make_players(players), mark=True)
    assert report.written.keys() <= {*players}
    (tmp_path / "out.xml").write_bytes(written)
    return tmp_path / "out.xml"


def run(*command: str | Path) -> str:
    """Runs a program; returns what it prints."""
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


def contents(xml: str) -> dict[str, list[str]]:
    """Categories and episode numbers by title."""
    return {
        each.findtext("title", ""): [
            element.text or "" for tag in ("category", "episode-num") for element in each.findall(tag)
        ]
        for each in etree.fromstring(xml.encode()).findall("programme")
    }


def test_all_programs_read_every_output(enriched: Path) -> None:
    expected = contents(enriched.read_text(encoding="utf-8"))
    assert len(expected) == 3 and sum(map(len, expected.values())) >= 3
    assert contents(run("tv_cat", enriched)) == expected
    assert contents(run("tv_sort", enriched)) == expected
    lines = run("tv_to_text", enriched)
    assert all(title in lines for title in expected)
    for category in {name for names in expected.values() for name in names if not name.startswith("S1")}:
        selected = contents(run("tv_grep", "--category", f"^{re.escape(category)}$", enriched))
        assert selected == {title: names for title, names in expected.items() if category in names}
