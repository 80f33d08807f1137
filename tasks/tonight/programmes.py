"""Groups the upcoming programmes of a guide by show and merges repeated airings.

Rows are the same programme if they have the same show key and the same episode, or if their channels are
twins (HD and SD, or one hour later on +1) and their times agree. A programme has a flag or a rating if one of
its rows has it, also as a mark in the title: "(Wdh.)", "[K8]".
"""

import datetime
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from storage.episodes.numbers import EpisodeNumber, fold_sub_title
from tasks.text.marks import find_ratings
from tasks.text.titles import parse_title
from tasks.tonight.exclusions import Exclusion, find_exclusion
from tasks.tonight.ratings import minimum_age, rating_text

REGULAR_DAYS = 3  # a title without episode data that airs on more days is a regular show, not a film
# Suffixes of channels that differ only in quality or by hours: "ITV2 HD", "ITV2 +1", "Film4+1", "RTL UHD".
_TWIN = re.compile(
    r"\s*\+(\d{1,2})\b|\s*(?:\b|(?-i:(?<=[a-z])(?=HD\b)))(?:full[ -]?hd|uhd|fhd|hd|sd|4k)\b\s*", re.IGNORECASE
)
_SLACK = datetime.timedelta(minutes=5)  # maximum difference of durations of twins


@dataclass(frozen=True, kw_only=True)
class Airing:
    """Time (UTC, time-zone aware; stop is None if unknown) and channel of an airing."""

    start: datetime.datetime
    stop: datetime.datetime | None
    channel: str  # name


@dataclass(frozen=True, kw_only=True)
class Programme(Airing):
    """An episode of a show, or a film, at its first airing of the evening."""

    title: str  # display title
    sub_title: str
    episode: str  # s2e4, e4 or empty
    description: str
    categories: tuple[str, ...]
    regular: bool  # airs on many days without episode data
    is_new: bool = False
    is_premiere: bool = False
    is_repeat: bool = False  # shown before and not new, as in Jellyfin
    age: int | None = None  # minimum age; None: not rated, or unknown
    ratings: tuple[str, ...] = ()  # as in the guide, such as "FSK 12"
    unknown_ratings: tuple[str, ...] = ()  # those that state no known age, if age is None
    rows: tuple[int, ...] = ()  # those of its airings in programmes.parquet
    also: tuple[Airing, ...] = ()  # other airings of the evening, ascending

    def seen_in(self, seen: Sequence[tuple[str, str]]) -> bool:
        """Whether it is among the (episode, sub-title) pairs of its show that a viewer has seen."""
        keys = self.episode, fold_sub_title(self.sub_title)
        if not any(keys):
            return not self.regular and ("", "") in seen
        return any(
            key and key == seen_key
            for pair in seen
            if len({episode.partition("p")[2] for episode in (self.episode, pair[0])} - {""}) < 2  # same part
            for key, seen_key in zip(keys, pair, strict=True)
        )


@dataclass(frozen=True)
class Show:
    """The programmes of one show key, sorted by start."""

    show_key: str
    programmes: tuple[Programme, ...]


@dataclass
class _Group:
    show_key: str
    rows: list[dict[str, Any]] = field(default_factory=list)


def fold_programmes(coming: pa.Table, include: Collection[Exclusion] = ()) -> list[Show]:
    """Groups the rows of ``upcoming_programmes``, sorted by first start.

    Args:
        coming: The rows.
        include: Which of placeholders, shopping and adult programmes are not skipped.
    """
    groups: dict[tuple[str, str], _Group] = {}  # by show key and episode
    slots: dict[
        tuple[str, int], list[tuple[dict[str, Any], _Group]]
    ] = {}  # rows by base name of the channel and start time
    rows = [{**row, **_read(row)} for row in coming.to_pylist()]
    for row in sorted(rows, key=lambda row: (row["start"], row["shift"], row["channel_name"])):
        about = row["title"], row["show_key"], row["channel_name"]
        exclusion = find_exclusion(*about, row["categories"] or ())
        if exclusion is not None and exclusion not in include:
            continue
        minute = (row["start"] - datetime.timedelta(hours=row["shift"])).timestamp() // 60
        slot = slots.setdefault((row["base"], int(minute)), [])
        twin = next((group for other, group in slot if _agree(row, other)), None)
        episode = row["episode"] or row["folded"]
        group = twin or groups.setdefault((row["show_key"], episode), _Group(row["show_key"]))
        group.rows.append(row)
        slot.append((row, group))
    shows: dict[str, list[Programme]] = {}
    for group in groups.values():
        if group.rows:
            shows.setdefault(group.show_key, []).append(_programme(group.rows))
    return [
        Show(key, tuple(sorted(programmes, key=lambda programme: programme.start)))
        for key, programmes in shows.items()
    ]


def channel_twin(name: str) -> tuple[str, int]:
    """Returns the common name of twins and the delay in hours: ("film4", 1) for "Film4 +1"."""
    base = _TWIN.sub(" ", name).strip().casefold()
    shifts = [int(match[1]) for match in _TWIN.finditer(name) if match[1]]
    return (base, sum(shifts)) if base else (name.casefold(), 0)


def _read(row: dict[str, Any]) -> dict[str, Any]:
    base, shift = channel_twin(row["channel_name"])
    episode, folded = EpisodeNumber(*(row[name] for name in EpisodeNumber._fields)).keys(row["sub_title"])
    parsed = parse_title(row["title"])
    return {
        "display": parsed.display,
        "show_key": parsed.show_key,
        "is_new": bool(row["is_new"]) or "<new>" in parsed.marks,
        "previously_shown": bool(row["previously_shown"]) or "<repeat>" in parsed.marks,
        "title_ratings": find_ratings(row["title"]) if "<rating>" in parsed.marks else (),
        "episode": episode,
        "folded": folded,
        "base": base,
        "shift": shift,
    }


def _agree(row: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two rows that begin together on different twin channels also end together."""
    if row["channel"] == other["channel"] or row["stop"] is None or other["stop"] is None:
        return False
    return abs((row["stop"] - row["start"]) - (other["stop"] - other["start"])) <= _SLACK


def _programme(rows: Sequence[dict[str, Any]]) -> Programme:
    first = rows[0]
    airings = [
        Airing(
            start=_aware(row["start"]), stop=row["stop"] and _aware(row["stop"]), channel=row["channel_name"]
        )
        for row in rows
    ]
    stated = (
        *({"system": "", "value": value} for row in rows for value in row["title_ratings"]),
        *(rating for row in rows for rating in row["ratings"] or ()),
    )
    age, unknown_ratings = minimum_age(stated)
    is_new = any(row["is_new"] for row in rows)
    return Programme(
        start=airings[0].start,
        stop=airings[0].stop,
        channel=airings[0].channel,
        title=first["display"],
        sub_title=first["sub_title"],
        episode=first["episode"],
        description=first["description"],
        categories=tuple(name for name in first["categories"] or () if any(map(str.isalpha, name))),
        regular=first["days"] > REGULAR_DAYS,
        is_new=is_new,
        is_premiere=any(row["is_premiere"] for row in rows),
        is_repeat=any(row["previously_shown"] for row in rows) and not is_new,
        age=age,
        ratings=tuple(dict.fromkeys(map(rating_text, stated))),
        unknown_ratings=unknown_ratings,
        rows=tuple(row["row"] for row in rows),
        also=tuple(dict.fromkeys(airing for airing in airings[1:] if airing != airings[0])),
    )


def _aware(moment: datetime.datetime) -> datetime.datetime:
    return moment.replace(tzinfo=datetime.UTC)
