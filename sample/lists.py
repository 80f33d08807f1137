"""The hand-written lists of this folder, read: what there is to show, and how each channel fills its day.

Every list is a tab-separated file with a header line and no quoting, so that a title is written as it is.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
LANGUAGES = ("en", "de", "fr")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A sort of programme.

    Attributes:
        form: ``series`` (has episodes), ``live`` (has none) or ``film`` (shown once or twice).
        minutes: Shortest and longest running time.
        categories: Language to category names, in that language's words.
    """

    name: str
    form: str
    minutes: tuple[int, int]
    categories: dict[str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class Listing:
    """A programme that may be shown.

    Attributes:
        kinds: The first says how it is scheduled, all of them where it may stand.
        year: Year of a film, as text; empty where the list has none.
        categories: Clean categories; empty for a placeholder without any.
    """

    title: str
    language: str
    kinds: tuple[str, ...]
    form: str
    minutes: tuple[int, int]
    categories: tuple[str, ...]
    year: str = ""


@dataclass(frozen=True, kw_only=True)
class Channel:
    """A channel; one without a name (``-`` in the list) is used but not listed in the guide.

    Attributes:
        offset_minutes: Local time minus UTC.
        says: The language attribute it puts on every title, true or not.
    """

    id: str
    name: str
    language: str
    theme: str
    offset_minutes: int
    says: str


@dataclass(frozen=True, kw_only=True)
class Daypart:
    """Hours of a theme's day, local time.

    Attributes:
        weekday: Monday to Friday, else Saturday and Sunday.
        strip: The same titles at the same hour all week, else other ones every day.
    """

    weekday: bool
    hours: tuple[int, int]
    strip: bool
    kinds: tuple[str, ...]


def read_rows(name: str) -> list[dict[str, str]]:
    """Rows of one list.

    Raises:
        ValueError: A row has more or fewer cells than the header.
    """
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    for number, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise ValueError(f"sample/{name}, line {number}: {row} does not have one cell a column; expected tabs as in the header")
    return rows


def read_kinds() -> dict[str, Kind]:
    """kinds.tsv by name."""
    return {
        row["kind"]: Kind(
            name=row["kind"],
            form=row["form"],
            minutes=_span(row["minutes"]),
            categories={language: tuple(row[language].split(";")) for language in LANGUAGES},
        )
        for row in read_rows("kinds.tsv")
    }


def read_titles(language: str) -> list[Listing]:
    """titles_LANGUAGE.tsv, in the order of the file.

    Raises:
        ValueError: A title's kind is not in kinds.tsv.
    """
    kinds = read_kinds()
    listings = []
    for row in read_rows(f"titles_{language}.tsv"):
        names = tuple(row["kinds"].split(","))
        if unknown := set(names) - kinds.keys():
            raise ValueError(f"sample/titles_{language}.tsv: {row['title']!r} is of kind {sorted(unknown)}; kinds.tsv has {sorted(kinds)}")
        categories = dict.fromkeys(category for name in names for category in kinds[name].categories[language])
        first = kinds[names[0]]
        listings.append(
            Listing(title=row["title"], language=language, kinds=names, form=first.form, minutes=first.minutes, categories=tuple(categories), year=row["year"])
        )
    return listings


def read_placeholders(language: str) -> list[Listing]:
    """What stands where nothing is known or nothing is shown."""
    return [
        Listing(
            title=row["title"],
            language=language,
            kinds=("placeholder",),
            form="live",
            minutes=_span(row["minutes"]),
            categories=(row["category"],) if row["category"] else (),
        )
        for row in read_rows("placeholders.tsv")
        if row["language"] == language
    ]


def read_channels() -> list[Channel]:
    """channels.tsv, in its order."""
    return [
        Channel(
            id=row["id"],
            name="" if row["name"] == "-" else row["name"],
            language=row["language"],
            theme=row["theme"],
            offset_minutes=int(row["offset"][:3]) * 60 + int(row["offset"][0] + row["offset"][3:]),
            says=row["says"],
        )
        for row in read_rows("channels.tsv")
    ]


def read_dayparts() -> dict[str, list[Daypart]]:
    """dayparts.tsv by theme."""
    themes: dict[str, list[Daypart]] = {}
    for row in read_rows("dayparts.tsv"):
        part = Daypart(weekday=row["days"] == "weekday", hours=(int(row["from"]), int(row["to"])), strip=row["pattern"] == "strip", kinds=tuple(row["kinds"].split(",")))
        themes.setdefault(row["theme"], []).append(part)
    return themes


def _span(text: str) -> tuple[int, int]:
    """``30-60`` to (30, 60)."""
    low, high = text.split("-")
    return int(low), int(high)
