"""Reads watch histories exported by Trakt, Plex, Emby, Jellyfin and the plugin Playback Reporting.

Trakt: the archive of https://trakt.tv/settings/data or one of its files. Rows have the format of the API
(https://trakt.docs.apiary.io, sync/history, sync/ratings, sync/watched). A row has ``watched_at``, or
``rated_at`` and ``rating`` (1 to 10); and ``movie``, or ``show`` and ``episode``. A row of the file
watched-shows has ``seasons`` with ``episodes`` instead of ``episode``. Other rows, such as rows of a
watchlist, a collection or the playback progress, are ignored.

Plex: JSON of the server's API (https://developer.plex.tv/pms), /library/sections/ID/all or
/status/sessions/history/all. ``MediaContainer`` has a list ``Metadata``, whose entries have ``viewCount`` or
``viewedAt``, ``lastViewedAt``, ``userRating`` (0 to 10) and, for episodes, ``grandparentTitle`` (the series).

Emby and Jellyfin: JSON of GET /Users/ID/Items?Recursive=true (https://dev.emby.media/reference/RestAPI,
UserItemDataDto). ``Items`` have ``UserData`` with the fields that players.py describes.

Playback Reporting (Jellyfin.Plugin.PlaybackReporting/Data/ActivityRepository.cs, ExportRawData; the plugin
of Emby has the same columns): one play per line, tab-separated and without a header, with the columns
ACTIVITY_COLUMNS. ``ItemName`` of an episode is "Series - s01e02 - Title". Times are in local time, or in UTC
if they end with a Z. The file has no running times, so a film counts as watched after 75 minutes, and an
episode after 18 minutes.
"""

import csv
import datetime
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from tasks.likes.tables import LikesError
from tasks.likes.watched import MediaItem, likes_table

ACTIVITY_COLUMNS: tuple[str, ...] = (
    "DateCreated", "UserId", "ItemId", "ItemType", "ItemName", "PlaybackMethod", "ClientName", "DeviceName",
    "PlayDuration",
)  # fmt: skip
WATCHED_SECONDS = {"Movie": 75 * 60, "Episode": 18 * 60}  # playing time from which an item counts as watched
_EPISODE_NAME = re.compile(r"(.+) - s(\d+)e(\d+) - (.*)")
_TRAKT_FILE = re.compile(r"(.*/)?(watched-history|ratings-(movies|shows|episodes))(-\d+)?\.json")


def read_export(
    file: Path, viewer: str, default_time: datetime.datetime, zone: datetime.tzinfo | None
) -> pa.Table | None:
    """Reads an export as a table of likes (schema LIKES); returns None if the file is not an export.

    Exports contain ids of users instead of names. If a file has several ids, they are used as names of
    viewers.

    Args:
        file: Export of one of the programs that the docstring of the module describes.
        viewer: Name of the viewer if the file has at most one id of a user.
        default_time: Time of likes without a time, a naive datetime in UTC.
        zone: Time zone of local times; None for the zone of this machine.

    Raises:
        LikesError: The file looks like an export but lacks its fields, or cannot be read.
    """
    try:
        export = _read(file)
        if export is None:
            return None
        source, items = export
        return likes_table(drop_single_viewer(items), source, viewer, default_time, zone)
    except (AttributeError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise LikesError(
            f"{file} does not match the documented export format ({type(error).__name__}: {error})"
        ) from error
    except OSError as error:
        raise LikesError(f"{file} cannot be read: {error.strerror or error}") from error


def drop_single_viewer(items: Iterable[MediaItem]) -> list[MediaItem]:
    """Returns the items; removes the viewer from all items if they have the same viewer."""
    items = list(items)
    has_several_viewers = len({item.viewer for item in items}) > 1
    return items if has_several_viewers else [replace(item, viewer="") for item in items]


def _read(file: Path) -> tuple[str, Iterable[MediaItem]] | None:
    """Reads an export. Returns the name of its program and its items, or None if it is not an export."""
    suffix = file.suffix.lower()
    if suffix == ".zip":
        with zipfile.ZipFile(file) as archive:
            names = [name for name in archive.namelist() if _TRAKT_FILE.fullmatch(name)]
            if not names:
                raise LikesError(
                    f"{file} has none of the watched-history and ratings files of an export of Trakt; "
                    "expected the archive of trakt.tv/settings/data"
                )
            return "trakt", [item for name in names for item in trakt_items(json.loads(archive.read(name)))]
    if suffix in (".tsv", ".csv", ".txt"):
        with open(file, encoding="utf-8-sig", newline="") as lines:
            first_line = lines.readline()
            separator = "\t" if "\t" in first_line else ","
            has_header = (
                tuple(name.strip('"') for name in first_line.strip().split(separator)) == ACTIVITY_COLUMNS
            )
            if not has_header and (separator == "," or first_line.count("\t") != len(ACTIVITY_COLUMNS) - 1):
                return None
            if not has_header:
                lines.seek(0)
            quoting = csv.QUOTE_NONE if separator == "\t" else csv.QUOTE_MINIMAL
            plays = csv.DictReader(lines, ACTIVITY_COLUMNS, delimiter=separator, quoting=quoting)
            return "playback reporting", list(activity_items(plays))
    if suffix != ".json":
        return None
    try:
        document = json.loads(file.read_text(encoding="utf-8-sig"))
    except (UnicodeDecodeError, json.JSONDecodeError):
        return None  # read_likes_table reads the file as JSON lines, or raises the error
    if isinstance(document, dict) and "MediaContainer" in document:
        return "plex", plex_items(document["MediaContainer"].get("Metadata", []))
    if isinstance(document, dict) and "Items" in document:
        return "emby", emby_items(document["Items"])
    if isinstance(document, list) and any(
        isinstance(row, dict) and isinstance(row.get("movie") or row.get("show"), dict) for row in document
    ):
        return "trakt", trakt_items(document)
    return None


def trakt_items(rows: Iterable[Mapping[str, Any]]) -> Iterator[MediaItem]:
    """Yields the films, episodes and series in the rows of a Trakt export."""
    for row in rows:
        title = row.get("movie") or row.get("show")
        if title is None or row.get("type") == "season":
            continue
        for season in row.get("seasons") or ():
            for episode in season["episodes"]:
                yield MediaItem(
                    title=title["title"],
                    season=season["number"],
                    episode=episode["number"],
                    plays=episode["plays"],
                    played_at=episode.get("last_watched_at"),
                )
        if not row.get("seasons"):
            episode = row.get("episode") or {}
            watched_at = row.get("watched_at") or row.get("last_watched_at")
            yield MediaItem(
                title=title["title"],
                sub_title=episode.get("title"),
                season=episode.get("season"),
                episode=episode.get("number"),
                plays=bool(watched_at),
                played_at=watched_at or row.get("rated_at"),
                rating=row.get("rating"),
            )


def plex_items(rows: Iterable[Mapping[str, Any]]) -> Iterator[MediaItem]:
    """Yields the films, episodes and series in a Plex response. Of a series, only the rating is used."""
    for row in rows:
        if row["type"] not in ("movie", "episode", "show"):
            continue
        is_episode = row["type"] == "episode"
        plays = 0 if row["type"] == "show" else row.get("viewCount") or row.get("viewedAt")
        yield MediaItem(
            title=row["grandparentTitle"] if is_episode else row["title"],
            sub_title=row["title"] if is_episode else "",
            season=row.get("parentIndex") if is_episode else None,
            episode=row.get("index") if is_episode else None,
            plays=plays,
            played_at=row.get("viewedAt") or row.get("lastViewedAt"),
            rating=row.get("userRating") or None,
            viewer=str(row.get("accountID", "")),
        )


def emby_items(rows: Iterable[Mapping[str, Any]]) -> Iterator[MediaItem]:
    """Yields the films, episodes and series in a response of the API of Emby or Jellyfin."""
    for row in rows:
        if row["Type"] not in ("Movie", "Episode", "Series", "Video"):
            continue
        user_data, series, length = row["UserData"], row.get("SeriesName"), row.get("RunTimeTicks")
        is_series = row["Type"] == "Series"
        yield MediaItem(
            title=series or row["Name"],
            sub_title=row["Name"] if series else "",
            season=row.get("ParentIndexNumber"),
            episode=row.get("IndexNumber"),
            plays=user_data.get("Played") and not is_series,
            share=user_data["PlaybackPositionTicks"] / length if length and not is_series else None,
            played_at=user_data.get("LastPlayedDate"),
            rating=user_data.get("Rating"),
            liked=1 if user_data.get("IsFavorite") else user_data.get("Likes"),
        )


def activity_items(plays: Iterable[Mapping[str, Any]]) -> Iterator[MediaItem]:
    """Yields the films and episodes that Playback Reporting lists; adds up all plays of an item by a user."""
    seconds: dict[tuple[str, str, str], int] = {}
    last_played: dict[tuple[str, str, str], str] = {}
    for play in plays:
        if play["ItemType"] in WATCHED_SECONDS:
            key = play["UserId"], play["ItemType"], play["ItemName"]
            seconds[key] = seconds.get(key, 0) + int(play["PlayDuration"] or 0)
            last_played[key] = max(last_played.get(key, ""), play["DateCreated"])
    for (user, item_type, name), played_seconds in seconds.items():
        fields: dict[str, Any] = {"title": name}
        if item_type == "Episode" and (name_match := _EPISODE_NAME.fullmatch(name)):
            fields = {"title": name_match[1], "sub_title": name_match[4]}
            if number := int(name_match[3]):  # 00: unknown
                fields |= {"season": int(name_match[2]), "episode": number}
        yield MediaItem(
            viewer=user,
            plays=played_seconds >= WATCHED_SECONDS[item_type],
            played_at=last_played[user, item_type, name],
            **fields,
        )
