"""Groups the upcoming programmes of a guide by show, and merges repeated airings of a programme.

Two rows of the guide belong to the same programme if they have the same show key (normalized title) and
episode. They also belong to the same programme if their times agree and their channels are twins: HD and SD,
or a channel and its copy "+1", which airs everything one hour later. A programme has a flag or a rating if
one of its rows has it. Flags and ratings are also read from marks in the title of a row: "(Wdh.)" (repeat),
"[K8]" (age 8).
"""

import datetime
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from storage.episodes.numbers import EpisodeNumber, fold_sub_title
from tasks.text.marks import find_ratings
from tasks.text.titles import parse_title
from tasks.tonight.exclusions import Exclusion, find_exclusion
from tasks.tonight.ratings import minimum_age, rating_text

REGULAR_DAYS = 3  # a title without episodes that airs on more days than this is a regular show, not a film
# Suffixes of channels that differ only in quality or by hours: "ITV2 HD", "ITV2 +1", "Film4+1", "RTL UHD".
_TWIN_SUFFIX = re.compile(
    r"\s*\+(\d{1,2})\b|\s*(?:\b|(?-i:(?<=[a-z])(?=HD\b)))(?:full[ -]?hd|uhd|fhd|hd|sd|4k)\b\s*", re.IGNORECASE
)
_MAX_DIFFERENCE = datetime.timedelta(minutes=5)  # maximum difference of the durations on twin channels


@dataclass(frozen=True, kw_only=True)
class Airing:
    """Broadcast of a programme on a channel."""

    start: datetime.datetime  # with the time zone UTC
    stop: datetime.datetime | None  # with the time zone UTC; None if unknown
    channel: str  # name of the channel


@dataclass(frozen=True, kw_only=True)
class Programme(Airing):
    """Film, or episode of a show. The fields of Airing describe its first airing of the evening."""

    title: str  # title to display
    sub_title: str
    episode: str  # episode number such as s2e4 or e4, or empty
    description: str
    categories: tuple[str, ...]  # categories as in the guide
    regular: bool  # whether its title airs on more than REGULAR_DAYS days
    is_new: bool = False
    is_premiere: bool = False
    is_repeat: bool = False  # whether it was shown before and is not marked as new
    age: int | None = None  # minimum age in years; None if it is not rated, or if no rating is recognized
    ratings: tuple[str, ...] = ()  # age ratings as in the guide, such as "FSK 12"
    unknown_ratings: tuple[str, ...] = ()  # ratings that were not recognized; empty if age is known
    rows: tuple[int, ...] = ()  # row numbers of its airings in programmes.parquet
    also: tuple[Airing, ...] = ()  # other airings of the evening, the earliest first

    def was_seen(self, seen_episodes: Sequence[tuple[str, str]]) -> bool:
        """Returns whether a viewer has seen the programme.

        Args:
            seen_episodes: (episode, sub-title) pairs of the show that the viewer has seen.
        """
        keys = self.episode, fold_sub_title(self.sub_title)
        if not any(keys):
            return not self.regular and ("", "") in seen_episodes
        for seen_keys in seen_episodes:
            parts = {episode.partition("p")[2] for episode in (self.episode, seen_keys[0])} - {""}
            is_other_part = len(parts) == 2  # the episodes state different parts
            if not is_other_part and any(
                key and key == seen_key for key, seen_key in zip(keys, seen_keys, strict=True)
            ):
                return True
        return False


@dataclass(frozen=True)
class Show:
    """Programmes of one show, for example the episodes of a series."""

    show_key: str  # normalized title
    programmes: tuple[Programme, ...]  # sorted by start


@dataclass
class _ProgrammeRows:
    """Rows of the guide that belong to the same programme."""

    show_key: str
    rows: list[dict[str, Any]] = field(default_factory=list)


def group_programmes(upcoming: pa.Table, include: Collection[Exclusion] = ()) -> list[Show]:
    """Groups the rows of a guide by programme, and programmes by show; shows are sorted by start.

    Args:
        upcoming: Result of ``upcoming_programmes``.
        include: Exclusions (placeholders, shopping, adult) whose programmes are not skipped.
    """
    groups: dict[tuple[str, str], _ProgrammeRows] = {}  # rows by show key and episode
    # rows by the name that twin channels share, and by the start minus the delay of the channel
    slots: dict[tuple[str, int], list[tuple[dict[str, Any], _ProgrammeRows]]] = {}
    rows = [{**row, **_derive_fields(row)} for row in upcoming.to_pylist()]
    for row in sorted(rows, key=lambda row: (row["start"], row["delay_hours"], row["channel_name"])):
        exclusion = find_exclusion(
            row["title"], row["show_key"], row["channel_name"], row["categories"] or ()
        )
        if exclusion is not None and exclusion not in include:
            continue
        minute = (row["start"] - datetime.timedelta(hours=row["delay_hours"])).timestamp() // 60
        slot = slots.setdefault((row["twin_name"], int(minute)), [])
        group = next((group for twin_row, group in slot if _is_twin_airing(row, twin_row)), None)
        if group is None:
            key = row["show_key"], row["episode"] or row["folded_sub_title"]
            group = groups.setdefault(key, _ProgrammeRows(row["show_key"]))
        group.rows.append(row)
        slot.append((row, group))
    shows: dict[str, list[Programme]] = {}
    for group in groups.values():
        shows.setdefault(group.show_key, []).append(_merge_rows(group.rows))
    return [
        Show(key, tuple(sorted(programmes, key=lambda programme: programme.start)))
        for key, programmes in shows.items()
    ]


def filter_programmes(shows: Sequence[Show], is_selected: Callable[[Show, Programme], bool]) -> list[Show]:
    """Returns the shows with the selected programmes only, and omits shows without a selected programme."""
    selected_shows = []
    for show in shows:
        programmes = tuple(programme for programme in show.programmes if is_selected(show, programme))
        if programmes:
            selected_shows.append(replace(show, programmes=programmes))
    return selected_shows


def channel_twin(name: str) -> tuple[str, int]:
    """Returns the name that twin channels share, and the delay in hours: ("film4", 1) for "Film4 +1"."""
    shared_name = _TWIN_SUFFIX.sub(" ", name).strip().casefold()
    delays = [int(match[1]) for match in _TWIN_SUFFIX.finditer(name) if match[1]]
    return (shared_name, sum(delays)) if shared_name else (name.casefold(), 0)


def _derive_fields(row: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields of a row that are derived from its title, episode and channel name."""
    twin_name, delay_hours = channel_twin(row["channel_name"])
    number = EpisodeNumber(*(row[name] for name in EpisodeNumber._fields))
    episode, folded_sub_title = number.keys(row["sub_title"])
    parsed_title = parse_title(row["title"])
    return {
        "display_title": parsed_title.display,
        "show_key": parsed_title.show_key,
        "is_new": bool(row["is_new"]) or "<new>" in parsed_title.marks,
        "previously_shown": bool(row["previously_shown"]) or "<repeat>" in parsed_title.marks,
        "title_ratings": find_ratings(row["title"]) if "<rating>" in parsed_title.marks else (),
        "episode": episode,
        "folded_sub_title": folded_sub_title,
        "twin_name": twin_name,
        "delay_hours": delay_hours,
    }


def _is_twin_airing(row: dict[str, Any], twin_row: dict[str, Any]) -> bool:
    """Returns whether two rows of twin channels that start together (without delay) also end together."""
    if row["channel"] == twin_row["channel"] or row["stop"] is None or twin_row["stop"] is None:
        return False
    difference = (row["stop"] - row["start"]) - (twin_row["stop"] - twin_row["start"])
    return abs(difference) <= _MAX_DIFFERENCE


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
        title=first_row["display_title"],
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
