"""Repeats by Jellyfin's rule, and the limit of age, with what is reported about them."""

import pytest

from tasks.tonight.filters import hide_programmes, lifted_exclusions
from tasks.tonight.programmes import group_programmes
from tasks.tonight.settings import TonightSettings
from tests.tasks.tonight.evenings import coming


def rated(system: str, value: str) -> dict:
    return {"ratings": [{"system": system, "value": value}]}


ROWS = [
    ("20:00", "21:00", "One", "Old", "", "", {"previously_shown": True}),
    ("20:00", "21:00", "Two", "Again new", "", "", {"previously_shown": True, "is_new": True}),
    ("20:00", "21:00", "Three", "Fresh", "", "", {"is_new": True, "is_premiere": True}),
    ("20:00", "21:00", "Four", "Silent"),
    ("20:00", "21:00", "Five", "Marked (Wdh.)"),
    ("20:00", "21:00", "Six", "Child", "", "", rated("FSK", "6")),
    ("20:00", "21:00", "Seven", "Grown", "", "", rated("VCHIP", "TV-MA")),
    ("20:00", "21:00", "Eight", "[K16] Greek"),
    ("20:00", "21:00", "Nine", "Odd", "", "", rated("Martian", "Zorg")),
]


def listed(**settings):
    shows, hidden = hide_programmes(group_programmes(coming(*ROWS)), TonightSettings(**settings))
    return {show.programmes[0].title for show in shows}, hidden


def test_everything_is_listed_by_default():
    titles, hidden = listed()
    assert len(titles) == len(ROWS) and not list(hidden.messages(TonightSettings()))


def test_a_repeat_was_shown_before_and_is_not_new():
    titles, hidden = listed(hide_repeats=True)
    assert {"Old", "Marked"} == listed()[0] - titles and hidden.repeats == 2


def test_programmes_above_the_limit_and_with_unknown_ratings_are_hidden():
    titles, hidden = listed(age=12)
    assert {"Grown", "Greek", "Odd"} == listed()[0] - titles
    messages = "; ".join(hidden.messages(TonightSettings(age=12)))
    assert "minimum age above 12, hidden: 2" in messages
    assert "unknown age rating, hidden: 1 (Martian Zorg)" in messages
    assert "no age rating, listed: 5" in messages


def test_unrated_programmes_can_be_hidden():
    assert listed(age=12, hide_unrated=True)[0] == {"Child"}


def test_messages_about_an_evening_without_ratings_say_what_is_hidden():
    def messages(row, **settings):
        settings = TonightSettings(age=12, **settings)
        _, hidden = hide_programmes(group_programmes(coming(row)), settings)
        return "; ".join(hidden.messages(settings))

    repeat, silent = ROWS[0], ROWS[3]
    assert "no effect" in messages(silent)
    assert messages(silent, hide_unrated=True).endswith("no age rating, hidden: 1")
    assert "age rating" not in messages(repeat, hide_repeats=True)


@pytest.mark.parametrize(("age", "kinds"), [(None, ("adult",)), (12, ()), (18, ("adult",))])
def test_a_limit_of_age_excludes_adult_programmes(age, kinds):
    assert lifted_exclusions(TonightSettings(age=age, include=("adult",))) == kinds


def test_flags_and_ratings_of_all_airings_count():
    rows = [
        ("20:00", "21:00", "ITV", "Vera", "Dark Road", "", {"previously_shown": True}),
        ("21:00", "22:00", "ITV +1", "Vera", "Dark Road", "", {"is_new": True, **rated("BBFC", "12")}),
    ]
    (show,) = group_programmes(coming(*rows))
    (programme,) = show.programmes
    assert (programme.is_new, programme.is_repeat, programme.age) == (True, False, 12)
    assert programme.ratings == ("BBFC 12",)
