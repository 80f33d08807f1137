"""Converts items of a media library or of a watch history to rows of ``LIKES``.

An item counts if the viewer rated it, marked it, or watched it to the end. A resume point ("continue
watching") is not an opinion, so a paused item has no row. An item that was watched to the end but not rated
has the value WATCHED.
"""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from storage.catalogue.likes import LIKES, STATED
from storage.episodes.numbers import EpisodeNumber
from tasks.likes.tables import SEEN_SHARE, scale
from tasks.text.titles import parse_title

WATCHED = 0.5


@dataclass(frozen=True, kw_only=True)
class Item:
    """A film, an episode or a series, and what its viewer did.

    Attributes:
        title: Title of the film or the series.
        sub_title: Title of the episode.
        season, episode: Numbers from 1 (season 0: specials); None if unknown.
        plays: Number of times it was played to the end, or a boolean.
        share: Position at which playing stopped, as a share of the running time.
        played_at: Time at which it was watched or rated: ISO text or POSIX seconds.
        rating: From 1 to 10.
        liked: 1 or 0.
        viewer: Name; empty if the source has none.
    """

    title: str | None
    sub_title: str | None = ""
    season: int | str | None = None
    episode: int | str | None = None
    plays: int | None = None
    share: float | None = None
    played_at: str | float | None = None
    rating: float | None = None
    liked: float | None = None
    viewer: str | None = ""


def likes_table(
    items: Iterable[Item], source: str, viewer: str, at: datetime.datetime, zone: datetime.tzinfo | None
) -> pa.Table:
    """Converts items to rows of ``LIKES``; items without an opinion have none.

    Args:
        source: Name of the program.
        viewer: Name of the viewer of items without one.
        at: Time of items without one, in UTC, as a datetime without a zone.
        zone: Time zone of times without one; None: the zone of this machine.
    """
    rows = (_to_row(item, source, viewer, at, zone) for item in items)
    return pa.Table.from_pylist([row for row in rows if row is not None], schema=LIKES)


def _to_row(
    item: Item, source: str, viewer: str, at: datetime.datetime, zone: datetime.tzinfo | None
) -> dict[str, Any] | None:
    seen = bool(item.plays) or (item.share or 0) >= SEEN_SHARE
    stated = None if item.rating is None else scale(float(item.rating), 1, 10)
    if item.liked is not None:
        stated = 2.0 * item.liked - 1
    if not item.title or (stated is None and not seen):
        return None
    season, episode = (None if number is None else int(number) for number in (item.season, item.episode))
    number = EpisodeNumber(season=season, episode=episode or None).key
    if stated is not None and not number:
        source = STATED
    elif stated is not None and not seen:
        source = f"{source}: rating"  # so that a later row about watching the episode does not replace it
    return {
        "viewer": item.viewer or viewer,
        "show_key": parse_title(item.title).show_key,
        "episode": number,
        "sub_title": item.sub_title or "",
        "source": source,
        "title": item.title,
        "time": _utc(item.played_at, zone) or at,
        "value": WATCHED if stated is None else stated,
        "seen": seen,
    }


def _utc(instant: str | float | None, zone: datetime.tzinfo | None) -> datetime.datetime | None:
    if not instant:
        return None
    if isinstance(instant, int | float):
        return datetime.datetime.fromtimestamp(instant, datetime.UTC).replace(tzinfo=None)
    moment = datetime.datetime.fromisoformat(instant)
    if moment.tzinfo is None and zone is not None:
        moment = moment.replace(tzinfo=zone)
    return moment.astimezone(datetime.UTC).replace(tzinfo=None)
