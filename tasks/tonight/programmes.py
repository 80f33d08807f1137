"""Groups the upcoming programmes of a guide by show and merges repeated airings.

Two rows of the guide are the same programme if they have the same show key (normalized title) and episode.
They are also the same programme if their times agree and their channels are twins: HD and SD, or a channel
and its copy "+1", one hour later. A programme has a flag or a rating if one of its rows has it, also as a
mark in the title: "(Wdh.)" (repeat), "[K8]" (age 8).
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
    """Broadcast of a programme on a channel."""

    start: datetime.datetime  # UTC, time-zone aware
    stop: datetime.datetime | None  # UTC, time-zone aware; None if unknown
    channel: str  # name of the channel


@dataclass(frozen=True, kw_only=True)
class Programme(Airing):
    """Film or episode of a show; the fields of Airing refer to its first airing of the evening."""

    title: str  # title to display
    sub_title: str
    episode: str  # episode number such as s2e4 or e4, or empty
    description: str
    categories: tuple[str, ...]  # categories as in the guide
    regular: bool  # whether it airs on many days without episode data
    is_new: bool = False
    is_premiere: bool = False
    is_repeat: bool = False  # whether it was shown before and is not marked as new
    age: int | None = None  # minimum age in years; None: not rated, or rating not recognized
    ratings: tuple[str, ...] = ()  # age ratings as in the guide, such as "FSK 12"
    unknown_ratings: tuple[str, ...] = ()  # ratings that were not recognized, if age is None
    rows: tuple[int, ...] = ()  # row numbers of its airings in programmes.parquet
    also: tuple[Airing, ...] = ()  # other airings of the evening, ascending by time

    def was_seen(self, seen: Sequence[tuple[str, str]]) -> bool:
        """Returns whether a viewer saw the programme, given the (episode, sub-title) pairs seen."""
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
    """Programmes of one show, for example the episodes of a series."""

    show_key: str  # normalized title
    programmes: tuple[Programme, ...]  # sorted by start


@dataclass
class _Group:
    """Rows of the guide that are the same programme."""

    show_key: str
    rows: list[dict[str, Any]] = field(default_factory=list)


def group_programmes(upcoming: pa.Table, include: Collection[Exclusion] = ()) -> list[Show]:
    """Groups rows of the guide to programmes and shows, sorted by start.

    Args:
        upcoming: Result of ``upcoming_programmes``.
        include: Kinds of programmes (placeholders, shopping, adult) that are not skipped.
    """
    groups: dict[tuple[str, str], _Group] = {}  # by show key and episode
    # rows by base name of the channel and start time
    slots: dict[tuple[str, int], list[tuple[dict[str, Any], _Group]]] = {}
    rows = [{**row, **_derive_fields(row)} for row in upcoming.to_pylist()]
    for row in sorted(rows, key=lambda row: (row["start"], row["shift"], row["channel_name"])):
        names = row["title"], row["show_key"], row["channel_name"]
        exclusion = find_exclusion(*names, row["categories"] or ())
        if exclusion is not None and exclusion not in include:
            continue
        minute = (row["start"] - datetime.timedelta(hours=row["shift"])).timestamp() // 60
        slot = slots.setdefault((row["base"], int(minute)), [])
        twin_group = next((group for airing, group in slot if _is_twin_airing(row, airing)), None)
        episode = row["episode"] or row["folded"]
        group = twin_group or groups.setdefault((row["show_key"], episode), _Group(row["show_key"]))
        group.rows.append(row)
        slot.append((row, group))
    shows: dict[str, list[Programme]] = {}
    for group in groups.values():
        if group.rows:
            shows.setdefault(group.show_key, []).append(_merge_rows(group.rows))
    return [
        Show(key, tuple(sorted(programmes, key=lambda programme: programme.start)))
        for key, programmes in shows.items()
    ]


def channel_twin(name: str) -> tuple[str, int]:
    """Returns the common name of twin channels and the delay in hours: ("film4", 1) for "Film4 +1"."""
    base = _TWIN.sub(" ", name).strip().casefold()
    shifts = [int(match[1]) for match in _TWIN.finditer(name) if match[1]]
    return (base, sum(shifts)) if base else (name.casefold(), 0)


def _derive_fields(row: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields of a row that are derived from its title, episode and channel name."""
    base, shift = channel_twin(row["channel_name"])
    episode, folded = EpisodeNumber(*(row[name] for name in EpisodeNumber._fields)).keys(row["sub_title"])
    parsed_title = parse_title(row["title"])
    return {
        "display": parsed_title.display,
        "show_key": parsed_title.show_key,
        "is_new": bool(row["is_new"]) or "<new>" in parsed_title.marks,
        "previously_shown": bool(row["previously_shown"]) or "<repeat>" in parsed_title.marks,
        "title_ratings": find_ratings(row["title"]) if "<rating>" in parsed_title.marks else (),
        "episode": episode,
        "folded": folded,
        "base": base,
        "shift": shift,
    }


def _is_twin_airing(row: dict[str, Any], other: dict[str, Any]) -> bool:
    """Returns whether two rows of twin channels with the same start (without delay) also end together."""
    if row["channel"] == other["channel"] or row["stop"] is None or other["stop"] is None:
        return False
    return abs((row["stop"] - row["start"]) - (other["stop"] - other["start"])) <= _SLACK


def _merge_rows(rows: Sequence[dict[str, Any]]) -> Programme:
    """Merges the rows of one programme, sorted by start, to a Programme."""
    first_row = rows[0]
    airings = [
        Airing(
            start=_set_utc(row["start"]),
            stop=row["stop"] and _set_utc(row["stop"]),
            channel=row["channel_name"],
        )
        for row in rows
    ]
    all_ratings = (
        *({"system": "", "value": value} for row in rows for value in row["title_ratings"]),
        *(rating for row in rows for rating in row["ratings"] or ()),
    )
    age, unknown_ratings = minimum_age(all_ratings)
    is_new = any(row["is_new"] for row in rows)
    return Programme(
        start=airings[0].start,
        stop=airings[0].stop,
        channel=airings[0].channel,
        title=first_row["display"],
        sub_title=first_row["sub_title"],
        episode=first_row["episode"],
        description=first_row["description"],
        categories=tuple(name for name in first_row["categories"] or () if any(map(str.isalpha, name))),
        regular=first_row["days"] > REGULAR_DAYS,
        is_new=is_new,
        is_premiere=any(row["is_premiere"] for row in rows),
        is_repeat=any(row["previously_shown"] for row in rows) and not is_new,
        age=age,
        ratings=tuple(dict.fromkeys(map(rating_text, all_ratings))),
        unknown_ratings=unknown_ratings,
        rows=tuple(row["row"] for row in rows),
        also=tuple(dict.fromkeys(airing for airing in airings[1:] if airing != airings[0])),
    )


def _set_utc(moment: datetime.datetime) -> datetime.datetime:
    """Adds the time zone UTC to a naive datetime."""
    return moment.replace(tzinfo=datetime.UTC)
