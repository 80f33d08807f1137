"""Minimum ages of programmes, from the rating systems in ratings.toml and from ratings in titles.

Guides often write a wrong system (many grabbers write MPAA or VCHIP for any value) or none. A value that the
table of its system does not contain is therefore read as an age if it contains one number, else by the tables
of all systems; if these differ, the highest age is used.
"""

import functools
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

OLDEST = 21  # larger numbers are not ages
_NUMBER = re.compile(r"\d+")
_CONTENT = re.compile(
    r"[ -][dlsvfhn](?:[ ,/]?[dlsvfhn])*$"
)  # letters for what a programme contains: TV-MA-LSV


def minimum_age(ratings: Iterable[Mapping[str, str | None]]) -> tuple[int | None, tuple[str, ...]]:
    """Returns the minimum age of a programme according to its ratings.

    Args:
        ratings: ``system`` (None: not stated) and ``value`` of each rating.

    Returns:
        The highest of the ages, and the ratings without a known age if no other rating has one. The age is
        None for a programme without ratings, and for one whose ratings say that it is not rated.
    """
    ages, unknown = [], []
    for rating in ratings:
        system, value = rating["system"] or "", rating["value"] or ""
        age = rating_age(system, value)
        if age is not None:
            ages.append(age)
        elif _fold(value) not in _tables()[1]:
            unknown.append(rating_text(rating))
    return (max(ages), ()) if ages else (None, tuple(unknown))


def rating_text(rating: Mapping[str, str | None]) -> str:
    """Formats a rating for a reader: "FSK 12", but "TV-14" where the value alone is clear."""
    system, value = rating["system"] or "", rating["value"] or ""
    is_clear = not system or "-" in value.strip("-") or system.casefold() in value.casefold()
    return value if is_clear else f"{system} {value}"


@functools.lru_cache(maxsize=4096)
def rating_age(system: str, value: str) -> int | None:
    """Returns the minimum age of one rating; None if it is unknown or means "not rated"."""
    tables, unrated = _tables()
    value, numbers = _fold(value), _NUMBER.findall(value)
    values = dict.fromkeys((value, _CONTENT.sub("", value)))
    ages = tables.get(_fold(system), {})
    if (age := next((ages[name] for name in values if name in ages), None)) is not None:
        return age
    if value in unrated:
        return None
    if len(numbers) == 1 and (number := float(numbers[0])) <= OLDEST:  # int rejects thousands of digits
        return int(number)
    return max((ages[name] for name in values for ages in tables.values() if name in ages), default=None)


def _fold(text: str) -> str:
    return " ".join(text.casefold().strip(" []()").split())


@functools.cache
def _tables() -> tuple[dict[str, dict[str, int]], frozenset[str]]:
    """Returns the ages of the values of each system by its names, and the values that mean "not rated"."""
    content = tomllib.loads(Path(__file__).with_name("ratings.toml").read_text(encoding="utf-8"))
    unrated = frozenset(map(_fold, content.pop("unrated")))
    tables: dict[str, dict[str, int]] = {}
    for system in content.values():
        ages = {_fold(value): age for value, age in system["ages"].items()}
        tables |= {_fold(name): ages for name in system["names"]}
    return tables, unrated
