"""Minimum ages by rating systems, as guides write them."""

import tomllib
from pathlib import Path

import pytest

from tasks.tonight import ratings
from tasks.tonight.ratings import minimum_age, rating_age, rating_text

AGES = [
    ("FSK", "12", 12),
    ("", "FSK 16", 16),
    ("", "ab 12", 12),
    ("VCHIP", "TV-14", 14),
    ("VCHIP", "TV-MA-LSV", 17),
    ("VCHIP", "TV-Y7-FV", 7),
    ("", "TV-PG", 10),
    ("TV", "R", 17),  # film ratings under the system of television
    ("MPAA", "TV-MA", 17),  # many grabbers write MPAA for everything
    ("MPAA", "PG-13", 13),
    ("MPAA", "NC-17", 18),
    ("Motion Picture Association of America", "G", 0),
    ("BBFC", "PG", 8),
    ("BBFC", "12A", 12),
    ("bbfc", "U", 0),
    ("Kijkwijzer", "AL", 0),
    ("Kijkwijzer", "16", 16),
    ("CSA", "Tout public", 0),
    ("CSA", "-12", 12),
    ("CSA", "3", 12),  # the third pictogram; not three years
    ("", "déconseillé aux moins de 10 ans", 10),
    ("ACB", "MA15+", 15),
    ("ACB", "M V", 15),
    ("FPB", "16 LVS", 16),
    ("DJCTQ", "L", 0),
    ("Brazil", "[14]", 14),
    ("KMRB", "15세 이상 관람가", 15),
    ("NCRTV", "K8", 8),
    ("", "12+", 12),
    ("", "+18", 18),
    ("nobody", "R", 18),  # the highest of MPAA (17), ACB (18) …
    ("Kijkwijzer", "Geweld", None),
    ("", "7.5/10", None),
    ("", "2025", None),
    ("", "9" * 5000, None),
    ("MPAA", "NR", None),
]


@pytest.mark.parametrize(("system", "value", "age"), AGES)
def test_ages(system, value, age):
    assert rating_age(system, value) == age


def test_each_value_of_a_table_has_its_age_in_its_system():
    content = tomllib.loads(Path(ratings.__file__).with_name("ratings.toml").read_text(encoding="utf-8"))
    systems = [system for system in content.values() if isinstance(system, dict)]
    names = [name for system in systems for name in system["names"]]
    assert len(names) == len(set(names))
    for system in systems:
        for name in system["names"]:
            for value, age in system["ages"].items():
                assert rating_age(name.upper(), f" {value.upper()} ") == age, (name, value)


def rating(system: str | None, value: str) -> dict[str, str | None]:
    return {"system": system, "value": value}


def test_the_highest_age_counts_and_words_about_the_content_do_not():
    ratings = [rating("Kijkwijzer", "12"), rating("Kijkwijzer", "Geweld"), rating("MPAA", "R")]
    assert minimum_age(ratings) == (17, ())


def test_unknown_is_not_unrated():
    assert minimum_age([rating("Martian", "Zorg")]) == (None, ("Martian Zorg",))
    assert minimum_age([rating("MPAA", "Not Rated")]) == minimum_age([]) == (None, ())


@pytest.mark.parametrize(
    ("system", "value", "text"),
    [("FSK", "12", "FSK 12"), ("VCHIP", "TV-14", "TV-14"), (None, "K8", "K8"), ("FSK", "FSK 6", "FSK 6")],
)
def test_a_rating_is_readable(system, value, text):
    assert rating_text(rating(system, value)) == text
