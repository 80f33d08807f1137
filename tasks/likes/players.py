"""Reads watch histories from the SQLite databases of media players, opened read-only.

Kodi: ``MyVideosNNN.db``, where NNN is 119 (Kodi 19) to 131 (Kodi 21); see xbmc/video/VideoDatabase.cpp and
https://kodi.wiki/view/Databases/MyVideos. The table ``files`` has playCount (NULL: not watched) and
lastPlayed (local time). ``movie``.c00 is the title of a film. ``episode``.c00, c12 and c13 are title, season
and number of an episode, and ``tvshow``.c00 is the title of the series. A ``bookmark`` of type 1 is a resume
point. userrating is 1 to 10, or 0 or NULL if there is no rating. A database belongs to one viewer (profile).

Jellyfin: ``jellyfin.db`` of 10.11; see Jellyfin.Database.Implementations/JellyfinDbContext.cs, UserData.cs
and BaseItemEntity.cs. ``UserData`` has rows per user and item (Played, PlaybackPositionTicks, LastPlayedDate
in UTC, Rating 0 to 10, Likes, IsFavorite), ``BaseItems`` has the items (Type, Name, SeriesName,
ParentIndexNumber, IndexNumber, RunTimeTicks), and ``Users`` has the names. An item with several keys has
several rows of user data.

The plugin Playback Reporting of Jellyfin and Emby: ``playback_reporting.db``, see exports.py.

Kodi and Jellyfin store a resume point if playing stops after 5 % of the running time, and delete it after
90 %. A resume point is ignored unless it lies in the credits (SEEN_SHARE in tables.py).
"""

import datetime
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa

from tasks.likes.exports import ACTIVITY_COLUMNS, activity_items, drop_single_viewer
from tasks.likes.tables import LikesError
from tasks.likes.watched import MediaItem, likes_table

_KODI_QUERY = """
    SELECT movie.c00 AS title, '' AS sub_title, NULL AS season, NULL AS episode,
           files.playCount AS plays, files.lastPlayed AS played_at, nullif(movie.userrating, 0) AS rating,
           bookmark.timeInSeconds / nullif(bookmark.totalTimeInSeconds, 0) AS share,
           NULL AS viewer, NULL AS liked
    FROM movie
    JOIN files ON files.idFile = movie.idFile
    LEFT JOIN bookmark ON bookmark.idFile = files.idFile AND bookmark.type = 1
    UNION ALL
    SELECT tvshow.c00, episode.c00, episode.c12, episode.c13, files.playCount, files.lastPlayed,
           coalesce(nullif(episode.userrating, 0), nullif(tvshow.userrating, 0)),
           bookmark.timeInSeconds / nullif(bookmark.totalTimeInSeconds, 0), NULL, NULL
    FROM episode
    JOIN tvshow ON tvshow.idShow = episode.idShow
    JOIN files ON files.idFile = episode.idFile
    LEFT JOIN bookmark ON bookmark.idFile = files.idFile AND bookmark.type = 1
"""
_JELLYFIN_QUERY = """
    SELECT coalesce(items.SeriesName, items.Name) AS title,
           CASE WHEN items.SeriesName IS NULL THEN '' ELSE items.Name END AS sub_title,
           items.ParentIndexNumber AS season, items.IndexNumber AS episode,
           max(played.Played) AS plays, max(played.LastPlayedDate) AS played_at, max(played.Rating) AS rating,
           max(played.PlaybackPositionTicks) * 1.0 / nullif(items.RunTimeTicks, 0) AS share,
           users.Username AS viewer, max(CASE WHEN played.IsFavorite THEN 1 ELSE played.Likes END) AS liked
    FROM UserData AS played
    JOIN BaseItems AS items ON items.Id = played.ItemId
    JOIN Users AS users ON users.Id = played.UserId
    WHERE items.Type LIKE '%.Movie' OR items.Type LIKE '%.Episode' OR items.Type LIKE '%.Series'
       OR items.Type LIKE '%.Video' OR items.Type LIKE '%.LiveTvProgram'
    GROUP BY users.Username, items.Id
"""


def read_player(
    file: Path, viewer: str, default_time: datetime.datetime, zone: datetime.tzinfo | None
) -> pa.Table:
    """Reads a database of Kodi, Jellyfin or Playback Reporting as a table of likes (schema LIKES).

    Args:
        file: Database, which is opened read-only; the player may be running.
        viewer: Name of the viewer of rows without a viewer.
        default_time: Time of likes without a time, a naive datetime in UTC.
        zone: Time zone of local times; None for the zone of this machine.

    Raises:
        LikesError: The database belongs to another program or version, or cannot be read.
    """
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            tables = {row["name"] for row in connection.execute("SELECT name FROM sqlite_master")}
            if {"UserData", "BaseItems", "Users"} <= tables:
                source, zone, query = "jellyfin", datetime.UTC, _JELLYFIN_QUERY
            elif {"files", "movie", "episode", "tvshow", "bookmark"} <= tables:
                source, query = "kodi", _KODI_QUERY
            elif "PlaybackActivity" in tables:
                rows = map(
                    dict, connection.execute(f"SELECT {', '.join(ACTIVITY_COLUMNS)} FROM PlaybackActivity")
                )
                items = drop_single_viewer(activity_items(rows))
                return likes_table(items, "playback reporting", viewer, default_time, zone)
            else:
                excerpt = ", ".join(sorted(tables)[:6]) or "none"
                raise LikesError(
                    f"{file} has the tables {excerpt}; expected MyVideosNNN.db of Kodi 19 or later, "
                    "jellyfin.db of Jellyfin 10.11 or later, or playback_reporting.db"
                )
            items = (MediaItem(**row) for row in connection.execute(query))
            return likes_table(items, source, viewer, default_time, zone)
    except LikesError:
        raise
    except (sqlite3.Error, ValueError, TypeError) as error:  # SQLite columns may contain values of any type
        raise LikesError(f"{file} cannot be read as a database of Kodi or Jellyfin: {error}") from error
