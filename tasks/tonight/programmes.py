"""The coming programmes of a guide as shows: each once, whatever channels carry it, with its other airings.

Rows are one programme if they have the same show key and the same episode, or if their channels are twins (HD
beside SD, an hour later on +1) and their times agree.
"""

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from storage.episodes.numbers import EpisodeNumber, fold_sub_title
from tasks.text.titles import is_placeholder, parse_title

REGULAR_DAYS = 3  # a title without episodes that airs on more days than this is a programme, not a film
# Channels with these differ in picture or by hours: "ITV2 HD", "ITV2 +1", "Film4+1", "RTL UHD".
_TWIN = re.compile(
    r"\s*\+(\d{1,2})\b|\s*(?:\b|(?-i:(?<=[a-z])(?=HD\b)))(?:full[ -]?hd|uhd|fhd|hd|sd|4k)\b\s*", re.IGNORECASE
)
_SLACK = datetime.timedelta(minutes=5)  # by which times of twins differ


@dataclass(frozen=True, kw_only=True)
class Airing:
    """When and where; UTC with its zone, the stop None where the guide has none."""

    start: datetime.datetime
    stop: datetime.datetime | None
    channel: str  # name


@dataclass(frozen=True, kw_only=True)
class Programme(Airing):
    """One episode of a show, or one film, at its first airing of the evening."""

    title: str  # as people read it
    sub_title: str
    episode: str  # s2e4, e4 or empty
    description: str
    categories: tuple[str, ...]
    regular: bool  # airs on many days without saying which episode
    also: tuple[Airing, ...] = ()  # its other airings of the evening, in their order

    def seen_in(self, seen: Sequence[tuple[str, str]]) -> bool:
        """Whether it is one of the episodes and sub-titles that a viewer has seen of its show."""
        own = self.episode, fold_sub_title(self.sub_title)
        if not any(own):
            return not self.regular and ("", "") in seen
        return any(
            mine and mine == theirs
            for one in seen
            if len({key.partition("p")[2] for key in (self.episode, one[0])} - {""}) < 2  # another part of it
            for mine, theirs in zip(own, one, strict=True)
        )


@dataclass(frozen=True)
class Show:
    """The programmes of one show key, by their start."""

    show_key: str
    programmes: tuple[Programme, ...]


@dataclass
class _Group:
    show_key: str
    rows: list[dict[str, Any]] = field(default_factory=list)


def fold_programmes(coming: pa.Table) -> list[Show]:
    """Shows of the rows of ``coming_programmes``, by their first start; placeholders are left out."""
    groups: dict[tuple[str, str], _Group] = {}  # by show key and episode
    slots: dict[tuple[str, int], list[tuple[dict[str, Any], _Group]]] = {}  # by what twins have in common
    rows = [{**row, **_read(row)} for row in coming.to_pylist()]
    for row in sorted(rows, key=lambda row: (row["start"], row["shift"], row["channel_name"])):
        if is_placeholder(row["show_key"]):
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
    return [Show(key, tuple(sorted(own, key=lambda one: one.start))) for key, own in shows.items()]


def channel_twin(name: str) -> tuple[str, int]:
    """What twins have in common, and by how many hours this one is later: ("film4", 1) of "Film4 +1"."""
    base = _TWIN.sub(" ", name).strip().casefold()
    shifts = [int(found[1]) for found in _TWIN.finditer(name) if found[1]]
    return (base, sum(shifts)) if base else (name.casefold(), 0)


def _read(row: dict[str, Any]) -> dict[str, Any]:
    base, shift = channel_twin(row["channel_name"])
    episode, folded = EpisodeNumber(*(row[name] for name in EpisodeNumber._fields)).keys(row["sub_title"])
    parsed = parse_title(row["title"])
    return {
        "display": parsed.display,
        "show_key": parsed.show_key,
        "episode": episode,
        "folded": folded,
        "base": base,
        "shift": shift,
    }


def _agree(row: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two programmes that begin together on twins also end together, on two channels."""
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
    return Programme(
        start=airings[0].start,
        stop=airings[0].stop,
        channel=airings[0].channel,
        title=first["display"],
        sub_title=first["sub_title"],
        episode=first["episode"],
        description=first["description"],
        categories=tuple(first["categories"] or ()),
        regular=first["days"] > REGULAR_DAYS,
        also=tuple(dict.fromkeys(airing for airing in airings[1:] if airing != airings[0])),
    )


def _aware(moment: datetime.datetime) -> datetime.datetime:
    return moment.replace(tzinfo=datetime.UTC)
