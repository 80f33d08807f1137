"""Grouping of upcoming programmes: twin channels, repeats, and programmes that a viewer has seen."""

import pytest

from tasks.tonight.programmes import channel_twin, group_programmes
from tests.tasks.tonight.evenings import at, coming


def folded(*rows, **more):
    shows = group_programmes(coming(*rows, **more))
    return {show.show_key: [(p.start, p.channel, len(p.also)) for p in show.programmes] for show in shows}


def test_twins_of_a_channel_are_one_programme():
    found = folded(
        ("20:00", "21:00", "Film4", "Vera"),
        ("20:00", "21:00", "Film4 HD", "Vera"),
        ("21:00", "22:00", "Film4 +1", "Vera"),
        ("22:00", "23:00", "Film4", "Luther"),
    )
    assert found == {"vera": [(at("20:00"), "Film4", 2)], "luther": [(at("22:00"), "Film4", 0)]}


def test_twins_are_one_even_where_their_titles_differ():
    found = folded(
        ("20:00", "21:00", "ITV", "CSI: Crime Scene Investigation"),
        ("21:02", "22:02", "ITV+1", "Luther"),  # two minutes late: another
        ("21:00", "22:00", "ITV+1", "CSI"),
        ("20:00", "20:30", "ITV HD", "Weather"),  # of another length
    )
    assert found == {
        "csi crime scene investigation": [(at("20:00"), "ITV", 1)],
        "luther": [(at("21:02"), "ITV+1", 0)],
        "weather": [(at("20:00"), "ITV HD", 0)],
    }


def test_a_later_twin_remains_after_the_first_airing():
    assert folded(("20:00", "21:00", "ITV+1", "Vera")) == {"vera": [(at("20:00"), "ITV+1", 0)]}


def test_episodes_of_a_show_are_programmes_and_repeats_of_one_are_not():
    found = folded(
        ("20:00", "21:00", "One", "Vera", "Dark Road"),
        ("21:00", "22:00", "One", "Vera", "Tuesday's Child"),
        ("23:00", "24:00", "Two", "Vera", "DARK ROAD"),
        ("22:00", "23:00", "One", "Luther S2 E4"),
        ("24:00", "25:00", "Two", "Luther", "", "1.3."),
    )
    assert found["vera"] == [(at("20:00"), "One", 1), (at("21:00"), "One", 0)]
    assert found["luther"] == [(at("22:00"), "One", 1)]


def test_parts_of_an_episode_are_two_programmes():
    rows = [
        ("20:00", "21:00", "One", "Vera", "Dark Road", "2.3.0/2"),
        ("21:00", "22:00", "One", "Vera", "Dark Road", "2.3.1/2"),
    ]
    films = [
        ("20:00", "21:00", "Two", "The Shell Seekers (1/2)"),
        ("21:00", "22:00", "Two", "The Shell Seekers (2/2)"),
    ]
    found = folded(*rows, *films)
    assert found.keys() == {"vera", "the shell seekers"}
    for airings in found.values():
        assert [start for start, *_ in airings] == [at("20:00"), at("21:00")]


def test_placeholders_are_left_out_and_no_rows_are_no_shows():
    assert folded(("20:00", "21:00", "One", "To Be Announced")) == {}
    assert group_programmes(coming(("20:00", None, "One", "Vera")).slice(1)) == []


def test_the_same_bytes_in_any_order():
    rows = [
        ("20:00", "21:00", "One HD", "Vera"),
        ("20:00", "21:00", "One", "Vera"),
        ("19:00", None, "Two", "Quiz"),
    ]
    assert folded(*rows) == folded(*reversed(rows))


@pytest.mark.parametrize(
    ("name", "twin"),
    [("ITV2 +1", ("itv2", 1)), ("Film4+1", ("film4", 1)), ("RTL HD", ("rtl", 0)), ("HD", ("hd", 0)),
     ("Das Erste UHD", ("das erste", 0)), ("Canal+", ("canal+", 0)), ("Sky Cinema +24", ("sky cinema", 24)),
     ("Sport 1", ("sport 1", 0)), ("BBCScotlandHD", ("bbcscotland", 0)), ("Wichd", ("wichd", 0))],
)  # fmt: skip
def test_twins_of_names(name, twin):
    assert channel_twin(name) == twin


@pytest.mark.parametrize(
    ("row", "days", "seen", "told"),
    [
        (("Vera", "Dark Road", "2.3."), 1, [("s3e4", "")], True),
        (("Vera", "Dark Road", "2.3."), 1, [("", "darkroad")], True),
        (("Vera", "Dark Road", "2.3."), 1, [("s3e5", "light road")], False),
        (("Vera", "Dark Road", "2.3."), 1, [("", "")], False),  # some episode of it
        (("Vera", "Dark Road", "2.3.1/2"), 1, [("s3e4p1", "darkroad")], False),  # the other part
        (("Vera", "Dark Road", "2.3.1/2"), 1, [("s3e4p2", "")], True),
        (("Vera", "Dark Road", "2.3.1/2"), 1, [("s3e4", "darkroad")], True),  # in one piece
        (("Formula E 2025", "Miami", ""), 1, [("", "jakarta")], False),
        (("Casablanca", "", ""), 1, [("", "")], True),
        (("Casablanca", "", ""), 1, [("s1e1", "")], False),
        (("Casablanca", "", ""), 1, [], False),
        (("The News", "", ""), 7, [("", "")], False),  # regular: another every day
    ],
)
def test_programmes_that_a_viewer_has_seen(row, days, seen, told):
    (show,) = group_programmes(coming(("20:00", "21:00", "One", *row), days=days))
    assert show.programmes[0].was_seen(seen) is told
