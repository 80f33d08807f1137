"""Determines the minimum ages of programmes from their age ratings, by the rating systems in ratings.toml.

Guides often state a wrong system (many grabbers write MPAA or VCHIP for any value) or none. If the table of
the system does not contain a value, a value with one number is read as an age. Any other value is searched in
the tables of all systems, and the highest age that is found is used.
"""

import functools
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

MAX_AGE = 21  # larger numbers are not ages
_NUMBER = re.compile(r"\d+")
# Letters after a rating that describe the content, such as LSV (language, sex, violence) in TV-MA-LSV.
_CONTENT_LETTERS = re.compile(r"[ -][dlsvfhn](?:[ ,/]?[dlsvfhn])*$")


def minimum_age(ratings: Iterable[Mapping[str, str | None]]) -> tuple[int | None, tuple[str, ...]]:
    """Returns the minimum age of a programme according to its ratings.

    Args:
        ratings: Mappings with the keys ``system`` (None if it is not stated) and ``value``.

    Returns:
        If a rating states an age, the highest age of all ratings and (). Otherwise, None and the ratings that
        were not recognized.
    """
    ages, unknown_ratings = [], []
    _, unrated = _read_tables()
    for rating in ratings:
        system, value = rating["system"] or "", rating["value"] or ""
        age = rating_age(system, value)
        if age is not None:
            ages.append(age)
        elif _fold(value) not in unrated:
            unknown_ratings.append(rating_text(rating))
    return (max(ages), ()) if ages else (None, tuple(unknown_ratings))


def rating_text(rating: Mapping[str, str | None]) -> str:
    """Formats a rating as "SYSTEM VALUE", or as "VALUE" if the value names its system, such as "TV-14"."""
    system, value = rating["system"] or "", rating["value"] or ""
    names_system = not system or "-" in value.strip("-") or system.casefold() in value.casefold()
    return value if names_system else f"{system} {value}"


@functools.lru_cache(maxsize=4096)
def rating_age(system: str, value: str) -> int | None:
    """Returns the minimum age of one rating; None if it is not recognized or means "not rated"."""
    tables, unrated = _read_tables()
    value, numbers = _fold(value), _NUMBER.findall(value)
    values = dict.fromkeys((value, _CONTENT_LETTERS.sub("", value)))
    ages = tables.get(_fold(system), {})
    if (age := next((ages[value] for value in values if value in ages), None)) is not None:
        return age
    if value in unrated:
        return None
    # int raises an error for thousands of digits, float does not
    if len(numbers) == 1 and (number := float(numbers[0])) <= MAX_AGE:
        return int(number)
    return max((ages[value] for value in values for ages in tables.values() if value in ages), default=None)


def _fold(text: str) -> str:
    """Normalizes a rating or the name of a system: lower case, single spaces, no brackets."""
    return " ".join(text.casefold().strip(" []()").split())


@functools.cache
def _read_tables() -> tuple[dict[str, dict[str, int]], frozenset[str]]:
    """Reads ratings.toml: ages by value for each name of a rating system, and the values for "not rated"."""
    content = tomllib.loads(Path(__file__).with_name("ratings.toml").read_text(encoding="utf-8"))
    unrated = frozenset(map(_fold, content.pop("unrated")))
    tables: dict[str, dict[str, int]] = {}
    for system in content.values():
        ages = {_fold(value): age for value, age in system["ages"].items()}
        tables |= {_fold(name): ages for name in system["names"]}
    return tables, unrated
