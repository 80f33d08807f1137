"""Reads the hand-written lists of this folder: titles, descriptions, kinds, channels and parts of the day.

Every list is a tab-separated file with a header line and without quoting.
"""

import csv
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent
LANGUAGES = ("en", "de", "fr")


class Kind(NamedTuple):
    """A kind of programme."""

    form: str  # series (has episodes), live (has none) or film (shown once or twice)
    minutes: tuple[int, int]  # shortest and longest running time
    categories: dict[str, tuple[str, ...]]  # language to category names, in that language's words


class Listing(NamedTuple):
    """Title that may be shown; a placeholder has the kind ``placeholder``."""

    title: str
    language: str
    kinds: tuple[str, ...]  # the first determines how it is scheduled, all of them where it may be shown
    form: str
    minutes: tuple[int, int]
    categories: tuple[str, ...]  # a placeholder may have none
    year: str = ""  # of a film; empty if the list has none
    descriptions: tuple[str, ...] = ()  # one in five titles has none


class Channel(NamedTuple):
    """Channel; a channel without a name (``-`` in the list) is used but not listed in the guide."""

    id: str
    name: str
    language: str
    theme: str
    offset_minutes: int  # local time minus UTC
    says: str  # language attribute of all its titles, which may be wrong


class Daypart(NamedTuple):
    """Part of the day of a theme, in local time."""

    weekday: bool  # Monday to Friday, else Saturday and Sunday
    hours: tuple[int, int]
    strip: bool  # same titles at the same hour all week; else other titles every day
    kinds: tuple[str, ...]


def _read_rows(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    for number, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise ValueError(f"sample/{name}, line {number}: {row}: expected as many tabs as in the header")
    return rows


def _span(text: str) -> tuple[int, int]:
    low, high = map(int, text.split("-"))
    return low, high


def read_kinds() -> dict[str, Kind]:
    """Reads kinds.tsv; the keys are the names of the kinds."""
    kinds = {}
    for row in _read_rows("kinds.tsv"):
        categories = {language: tuple(row[language].split(";")) for language in LANGUAGES}
        kinds[row["kind"]] = Kind(row["form"], _span(row["minutes"]), categories)
    return kinds


def read_descriptions(language: str) -> dict[str, tuple[str, ...]]:
    """Reads descriptions_LANGUAGE.tsv; maps titles to their descriptions in the order of the file."""
    descriptions: dict[str, tuple[str, ...]] = defaultdict(tuple)
    for row in _read_rows(f"descriptions_{language}.tsv"):
        descriptions[row["title"]] += (row["description"],)
    return descriptions


def read_titles(language: str) -> list[Listing]:
    """Reads titles_LANGUAGE.tsv, in the order of the file.

    Raises:
        ValueError: The kind of a title is not in kinds.tsv, or the title of a description is not in the list.
    """
    known, told, listings = read_kinds(), read_descriptions(language), []
    for row in _read_rows(f"titles_{language}.tsv"):
        kinds = tuple(row["kinds"].split(","))
        if unknown := set(kinds) - known.keys():
            problem = f"{row['title']!r} is of kind {sorted(unknown)}; kinds.tsv has {sorted(known)}"
            raise ValueError(f"sample/titles_{language}.tsv: {problem}")
        names = dict.fromkeys(name for kind in kinds for name in known[kind].categories[language])
        form, minutes, _ = known[kinds[0]]
        more = row["year"], told.pop(row["title"], ())
        listings.append(Listing(row["title"], language, kinds, form, minutes, tuple(names), *more))
    if told:
        problem = f"{sorted(told)} are not in titles_{language}.tsv"
        raise ValueError(f"sample/descriptions_{language}.tsv: {problem}")
    return listings


def read_placeholders(language: str) -> list[Listing]:
    """Reads placeholders.tsv."""
    rows = [row for row in _read_rows("placeholders.tsv") if row["language"] == language]
    categories = [(row["category"],) if row["category"] else () for row in rows]
    return [
        Listing(row["title"], language, ("placeholder",), "live", _span(row["minutes"]), category)
        for row, category in zip(rows, categories, strict=True)
    ]


def read_channels() -> list[Channel]:
    """Reads channels.tsv, in the order of the file."""
    channels = []
    for row in _read_rows("channels.tsv"):
        sign, hours, minutes = row["offset"][0], row["offset"][1:3], row["offset"][3:]
        offset = int(sign + hours) * 60 + int(sign + minutes)
        name = "" if row["name"] == "-" else row["name"]
        channels.append(Channel(row["id"], name, row["language"], row["theme"], offset, row["says"]))
    return channels


def read_dayparts() -> dict[str, list[Daypart]]:
    """Reads dayparts.tsv; the keys are the themes."""
    themes: dict[str, list[Daypart]] = defaultdict(list)
    for row in _read_rows("dayparts.tsv"):
        hours, kinds = (int(row["from"]), int(row["to"])), tuple(row["kinds"].split(","))
        part = Daypart(row["days"] == "weekday", hours, row["pattern"] == "strip", kinds)
        themes[row["theme"]].append(part)
    return themes
