"""Converts items of a media library or of a watch history to a table of likes (schema LIKES).

An item is used if the viewer rated it, marked it as liked or disliked, or watched it to the end. If the
viewer has only paused an item ("continue watching"), this is not an opinion, and the item is skipped. An item
that was watched to the end but not rated gets the value WATCHED_VALUE.
"""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from storage.catalogue.feeds import to_naive_utc
from storage.catalogue.likes import LIKES, STATED
from storage.episodes.numbers import EpisodeNumber
from storage.home.zones import in_zone
from tasks.likes.tables import SEEN_SHARE, scale_to_opinion
from tasks.text.titles import parse_title

WATCHED_VALUE = 0.5  # value of an item that was watched but not rated, from -1 (dislike) to 1 (like)


@dataclass(frozen=True, kw_only=True)
class MediaItem:
    """Film, episode or series, with the rating and the watch history of a viewer.

    Attributes:
        title: Title of the film or the series.
        sub_title: Title of the episode.
        season, episode: Numbers of season and episode from 1 (season 0: specials); None if unknown.
        plays: Number of times that the item was played to the end, or whether it was played to the end.
        share: Position at which playing stopped, as a share of the running time.
        played_at: Time at which the item was watched or rated: ISO text or POSIX seconds.
        rating: Rating from 1 to 10; None if the item is not rated.
        liked: 1 for a like, 0 for a dislike, None for neither.
        viewer: Name of the viewer; empty if unknown.
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
    items: Iterable[MediaItem],
    source: str,
    viewer: str,
    default_time: datetime.datetime,
    zone: datetime.tzinfo | None,
) -> pa.Table:
    """Converts items to a table of likes (schema LIKES), without items that have no opinion.

    Args:
        items: Films, episodes and series.
        source: Name of the program from which the items come.
        viewer: Name of the viewer of items without a viewer.
        default_time: Time of items without a time, a naive datetime in UTC.
        zone: Time zone of local times; None for the zone of this machine.
    """
    rows = (_to_row(item, source, viewer, default_time, zone) for item in items)
    return pa.Table.from_pylist([row for row in rows if row is not None], schema=LIKES)


def _to_row(
    item: MediaItem, source: str, viewer: str, default_time: datetime.datetime, zone: datetime.tzinfo | None
) -> dict[str, Any] | None:
    """Converts an item to a row of the table; returns None if the item has no title or no opinion."""
    is_seen = bool(item.plays) or (item.share or 0) >= SEEN_SHARE
    rating = None if item.rating is None else scale_to_opinion(float(item.rating), 1, 10)
    if item.liked is not None:
        rating = 2.0 * item.liked - 1
    if not item.title or (rating is None and not is_seen):
        return None
    season, episode = (
        int(number) if number not in (None, "") else None for number in (item.season, item.episode)
    )
    episode_key = EpisodeNumber(season=season, episode=episode or None).key
    if rating is not None and not episode_key:
        source = STATED
    elif rating is not None and not is_seen:
        source = f"{source}: rating"  # so that the rating remains when the viewer has watched the episode
    return {
        "viewer": item.viewer or viewer,
        "show_key": parse_title(item.title).show_key,
        "episode": episode_key,
        "sub_title": item.sub_title or "",
        "source": source,
        "title": item.title,
        "time": _to_utc(item.played_at, zone) or default_time,
        "value": WATCHED_VALUE if rating is None else rating,
        "seen": is_seen,
    }


def _to_utc(instant: str | float | None, zone: datetime.tzinfo | None) -> datetime.datetime | None:
    """Converts ISO text or POSIX seconds to a naive datetime in UTC; returns None for an empty value."""
    if not instant:
        return None
    if isinstance(instant, int | float):
        moment = datetime.datetime.fromtimestamp(instant, datetime.UTC)
    else:
        moment = datetime.datetime.fromisoformat(instant)
    return to_naive_utc(in_zone(moment, zone) if zone else moment)
