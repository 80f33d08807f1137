"""What is added for each player, and what must not be added."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from lxml import etree

from tasks.enrich.errors import EnrichError
from tasks.enrich.for_players import PlayerNames
from tasks.enrich.insertion import add_declaration
from tasks.enrich.output import check_output, genres_file
from tasks.enrich.players import PLAYERS
from tasks.enrich.players.base import Programme
from tasks.enrich.players.dvb import GENRES_TABLE
from tasks.enrich.players.kodi import genres_xml
from tasks.enrich.report import report_lines
from tasks.enrich.settings import EnrichOptions, make_players
from tasks.kinds.kinds import KindPrediction
from tests.tasks.enrich.guides import BAKING, MARKED, NEW, programme
from tests.tasks.enrich.test_bytes import DTD, FILES, LONG, guide

FIRST, SECOND = (f'<episode-num system="xmltv_ns">0.{number}.</episode-num>' for number in (0, 1))


def test_dvb_genres_are_those_of_tvheadend() -> None:
    """In the order of src/epg.c, so that the ids are right, too."""
    reference = Path(__file__).with_name("tvheadend_genres.csv")
    with reference.open(encoding="utf-8", newline="") as file:
        rows = [(row["group"], row["name"]) for row in csv.DictReader(file, delimiter=";")]
    groups = list(dict.fromkeys(group for group, _ in rows))
    with GENRES_TABLE.open(encoding="utf-8", newline="") as file:
        ids = {(row["level 1"], row["level 2"]): int(row["id"], 16) for row in csv.DictReader(file)}
    of_group = {group: [name for other, name in rows if other == group] for group in groups}
    assert ids == {
        (group, name): (groups.index(group) + 1) * 16 + of_group[group].index(name) for group, name in rows
    }


FLAGS = [
    ((), {"film"}, False, ("Movie",)),
    ((), {"film"}, True, ()),  # a movie would lose its number
    ((), {"film", "series"}, False, ()),
    ((), {"series"}, True, ()),
    (("Spielfilm",), {"film", "children"}, False, ("Movie", "Kids")),
    (("Movie",), {"film"}, False, ()),
    (("MOVIE", "Family"), {"film", "children"}, False, ()),
    (("Soccer",), {"sport"}, False, ("Sports",)),
    (("Football",), {"sport"}, False, ()),
    (("Wetter",), {"news"}, True, ("News",)),
    (("Konzert",), {"music"}, False, ()),
    ((), set(), False, ()),
]


@pytest.mark.parametrize("player", ["jellyfin", "emby"])
@pytest.mark.parametrize(("categories", "kinds", "numbered", "expected"), FLAGS)
def test_flags(player: str, categories, kinds, numbered, expected) -> None:
    seen = Programme(categories=categories, kinds=frozenset(kinds), numbered=numbered)
    assert PLAYERS[player]().names(seen) == expected


GENRES = [
    # categories, kinds, genre by the vote, names for Tvheadend, names for Kodi
    (("Crime drama",), {"series"}, "", ("Movie / Drama", "Detective / Thriller"), ()),
    (("movie/drama", "Comedy"), set(), "", ("Comedy",)[1:], ()),
    (("Regular",), {"news"}, "", ("News / Current affairs",), ("News / Current affairs",)),
    (("Regular",), {"series"}, "Show / Game show", ("Show / Game show",), ("Show / Game show",)),
    (("Animation",), {"children"}, "", None, ()),
    (
        (),
        {"film", "children"},
        "Sports",
        ("Movie / Drama", "Children's / Youth programs"),
        ("Movie / Drama",),
    ),
    ((), {"series"}, "", (), ()),
]


@pytest.mark.parametrize(("categories", "kinds", "genre", "tvheadend", "kodi"), GENRES)
def test_genres(categories, kinds, genre, tvheadend, kodi) -> None:
    seen = Programme(categories=categories, kinds=frozenset(kinds), genre=genre)
    names = PLAYERS["tvheadend"]().names(seen)
    assert names == tvheadend if tvheadend is not None else "Children's / Youth programs" in names
    assert PLAYERS["kodi"]().names(seen) == kodi


def test_the_table_of_genres_maps_what_kodi_looks_up() -> None:
    special = "Special events (Olympic Games, World Cup, etc.)"
    categories = ["Crime", "Rock & pop", "Sports, Football", special, "Regular", "krimi"]
    root = etree.fromstring(genres_xml(categories))
    assert {genre.text: genre.get("genreId") for genre in root.findall("genre")} == {
        "Crime": "0x11", "krimi": "0x11", "Sports": "0x40", " Football": "0x43",
        " World Cup": "0x41", "Rock & pop": "0x61",
    }  # fmt: skip


def test_additions_for_players_are_marked_and_valid_and_all_else_is_copied(fill: Callable) -> None:
    film = programme("Odd one", "<category>Film</category>")
    content = guide(LONG.format(title=BAKING, category=""), film, programme(NEW), head="").encode()
    written, report = fill(content, players=make_players(PLAYERS), mark=True)
    head, _, body = written.partition(b"\n")
    assert head == b'<?xml version="1.0" encoding="UTF-8"?>'
    assert MARKED.sub(b"", body) == content
    assert DTD.validate(etree.fromstring(written)), DTD.error_log
    assert b"<category>Film</category><category>Movie</category><!-- guidespace 1.00 -->" in body
    assert b"<category>COOKERY</category><!-- guidespace 1.00 -->\n    <category>Leisure hobbies<" in body
    assert report.written["jellyfin"] == report.written["emby"] == {"Movie": 1}
    assert {"Film", "Movie", "COOKERY"} <= report.categories
    lines = list(report_lines(report, EnrichOptions(players=make_players(["emby", "kodi"])), "out.xml"))
    assert "added for emby: Movie to 1 programmes" in lines and "added for kodi: nothing" in lines
    assert "The table of genres for Kodi: out.genres.xml" in lines


@pytest.mark.parametrize("name", FILES)
def test_all_other_bytes_are_copied(fill: Callable, name: str) -> None:
    players = make_players(["jellyfin", "tvheadend"])
    written, report = fill(FILES[name], mark=True, players=players)
    codec = {"UTF-16": "utf-16-le", "UTF-16 big": "utf-16-be"}.get(name, "")
    plain = written.decode(codec).encode() if codec else written
    removed, count = MARKED.subn(b"", plain)
    assert count > sum(report.filled_by_source.values()) > 0
    assert (removed.decode().encode(codec) if codec else removed) == FILES[name]


def test_a_movie_never_has_an_episode_number(fill: Callable) -> None:
    """Neither by a category, nor by a number that other airings have."""
    numbered = [
        programme("Odd", f"<sub-title>{text}</sub-title>{n}") for text, n in (("A", FIRST), ("B", SECOND))
    ]
    gap = programme("Odd", "<sub-title>A</sub-title>")
    film = programme("Odd", "<sub-title>A</sub-title><category>Movie</category>")
    german = programme("Odd", f"<sub-title>A</sub-title><category>Spielfilm</category>{FIRST}")
    content = guide(*numbered, gap, film, german, film).encode()
    for player, expected in (("jellyfin", 4), ("tvheadend", 3)):
        written, _ = fill(content, players=make_players([player]))
        programmes = etree.fromstring(written).findall("programme")
        assert sum(each.find("episode-num") is not None for each in programmes) == expected
        if player == "jellyfin":
            for each in programmes:
                words = {category.text for category in each.findall("category")}
                assert "Movie" not in words or each.find("episode-num") is None


def test_predicted_kinds_and_genres_have_a_confidence() -> None:
    film = [(KindPrediction("film", 0.98, "predicted"),)]
    for_jellyfin = PlayerNames(make_players(["jellyfin"]), film, {})
    assert for_jellyfin.select_names(0, (), ["Drama"], is_numbered=False) == (
        ["Drama", "Movie"],
        0.98,
        [("jellyfin", "Movie")],
    )
    assert for_jellyfin.select_names(0, ("Drama",), [], is_numbered=True) == ([], 1.0, [])
    assert for_jellyfin.select_names(0, (), ["Movie"], is_numbered=True) == ([], 1.0, [])
    assert for_jellyfin.select_names(0, ("Football",), [], is_numbered=False) == ([], 1.0, [])
    for_kodi = PlayerNames(make_players(["kodi"]), [()], {0: ("Sports", 0.91)})
    assert for_kodi.select_names(0, ("Regular",), [], is_numbered=False) == (
        ["Sports"],
        0.91,
        [("kodi", "Sports")],
    )
    assert for_kodi.select_names(0, ("Crime",), [], is_numbered=False) == ([], 1.0, [])


def test_placeholders_do_not_get_the_kind_of_other_airings(fill: Callable) -> None:
    """Another title does."""
    sport = "<category>Soccer</category>"
    for title, count in (("No information", 1), ("Odd", 2)):
        content = guide(programme(title, sport), programme(title, sport, channel="two"), programme(title))
        written, _ = fill(content.encode(), players=make_players(["jellyfin"]))
        assert written.count(b"<category>Sports</category>") == count + 1


@pytest.mark.parametrize(
    ("head", "encoding", "expected"),
    [
        (b"<tv/>", "utf-8", b'<?xml version="1.0" encoding="UTF-8"?>\n<tv/>'),
        (b"\xef\xbb\xbf<tv/>", "utf-8", b'\xef\xbb\xbf<?xml version="1.0" encoding="UTF-8"?>\n<tv/>'),
        (b"<tv>\xe4</tv>", "cp1252", b'<?xml version="1.0" encoding="windows-1252"?>\n<tv>\xe4</tv>'),
        (b"<?xml version='1.0'?><tv/>", "utf-8", b"<?xml version='1.0'?><tv/>"),
        (b"", "utf-8", b'<?xml version="1.0" encoding="UTF-8"?>\n'),
    ],
)
def test_declaration(head: bytes, encoding: str, expected: bytes) -> None:
    assert b"".join(
        add_declaration(iter([head, b"more"] if head else []), encoding)
    ) == expected + b"more" * bool(head)


def test_options() -> None:
    assert [player.name for player in make_players(["kodi", "emby", "kodi"])] == ["kodi", "emby"]
    with pytest.raises(
        EnrichError, match="unknown player 'plex'; expected one of emby, jellyfin, kodi, tvheadend"
    ):
        make_players(["plex"])
    with pytest.raises(EnrichError, match="name a file instead of -"):
        check_output("-", EnrichOptions(players=make_players(["kodi"])))
    check_output("-", EnrichOptions(players=make_players(["jellyfin"])))


@pytest.mark.parametrize(
    ("out", "expected"), [("a/uk.1.xml.gz", "a/uk.1.genres.xml"), ("uk", "uk.genres.xml")]
)
def test_the_table_of_genres_is_in_the_folder_of_the_guide(out: str, expected: str) -> None:
    assert genres_file(out) == Path(expected)
