"""Reads likes from a table: CSV, Parquet or JSON (an array of objects, or one object per line).

The columns are ``title`` (or ``programme``), one of ``liked``, ``rating`` and ``share``, and optionally
``viewer``, ``time``, ``episode`` and ``sub_title``, in any order and case. Other columns are ignored. The
value of ``liked``, ``rating`` or ``share`` is converted to an opinion from -1 (dislike) to 1 (like):

    liked    true, yes, 1, like → 1        false, no, 0, -1, dislike → -1
    rating   (2 r - low - high) / (high - low), clipped to [-1, 1]. The scale from low to high is 1 to 5 if
             the largest rating r in the file is at most 5, else 1 to 10 if it is at most 10, else 0 to 100.
    share    max(0, 2 s - 1), because stopping early is not a dislike. s is the share of the programme that
             was watched, 0 to 1, or 0 to 100 if the largest share in the file is above 1.
"""

import csv
import datetime
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from storage.catalogue.feeds import to_naive_utc
from storage.catalogue.likes import LIKES, STATED
from storage.episodes.numbers import read_episode
from storage.errors import ExpectedError
from storage.home.zones import in_zone
from tasks.text.titles import parse_title

SEEN_SHARE = 0.8  # watched share from which a programme counts as watched to the end; credits are not watched
SHARE_TOLERANCE = 1e-6  # tolerance for rounded shares
COLUMN_NAMES = {  # names of each column that a file may use
    "viewer": ("viewer", "user", "user_id", "userid"),
    "title": ("title", "programme", "program", "name"),
    "time": ("time", "date", "timestamp", "watched_at"),
    "liked": ("liked", "like"),
    "rating": ("rating",),
    "share": ("share", "share_watched", "watched"),
    "episode": ("episode",),
    "sub_title": ("sub_title", "subtitle", "sub-title"),
}
OPINION_COLUMNS = ("liked", "rating", "share")  # columns that may contain the opinion
YES_TEXTS, NO_TEXTS = (
    ("true", "yes", "1", "1.0", "like"),
    ("false", "no", "0", "0.0", "-1", "-1.0", "dislike"),
)


class LikesError(ExpectedError, ValueError):
    """Error: a file of likes cannot be read. The message says why, and which content is expected."""


def read_likes_table(
    file: Path, viewer: str, default_time: datetime.datetime, zone: datetime.tzinfo | None
) -> pa.Table:
    """Reads a CSV, Parquet or JSON file as a table of likes (schema LIKES).

    Args:
        file: File with the columns that the docstring of the module describes.
        viewer: Name of the viewer of rows without a viewer.
        default_time: Time of rows without a time, a naive datetime in UTC.
        zone: Time zone of times without a zone; None for the zone of this machine.

    Raises:
        LikesError: The file has another format, lacks a column, or has an invalid value.
    """
    rows = _rename_columns(_read_rows(file), file)
    opinions = {
        name: _to_opinions(file, [row[name] for row in rows], name)
        for name in OPINION_COLUMNS
        if rows and name in rows[0]
    }
    likes = []
    for row_number, row in enumerate(rows, 1):
        title, sub_title = (str(row.get(name) or "").strip() for name in ("title", "sub_title"))
        if not title:
            raise LikesError(f"{file}, row {row_number}: the title is empty; expected a title in every row")
        stated = ((name, values[row_number - 1]) for name, values in opinions.items())
        column, opinion = next(((name, value) for name, value in stated if value is not None), ("", None))
        if opinion is None:
            continue
        numbers = [("", str(row["episode"]))] if row.get("episode") else []
        episode, _ = read_episode(numbers, title, sub_title).keys(sub_title)
        likes.append(
            {
                "viewer": str(row.get("viewer") or viewer),
                "show_key": parse_title(title).show_key,
                "episode": episode,
                "sub_title": sub_title,
                "source": STATED if column == "liked" else f"table: {column}",
                "title": title,
                "time": _parse_time(row.get("time"), default_time, zone, file, row_number),
                "value": opinion,
                "seen": column == "share" and opinion > 2 * SEEN_SHARE - 1 - SHARE_TOLERANCE,
            }
        )
    return pa.Table.from_pylist(likes, schema=LIKES)


def _rename_columns(rows: Sequence[Mapping[str, Any]], file: Path) -> list[dict[str, Any]]:
    """Selects the columns in COLUMN_NAMES and renames them to the keys of COLUMN_NAMES."""
    if not rows:
        return []
    columns = {str(name).strip().casefold(): name for row in rows for name in row}
    selected_columns = {
        name: next(columns[alias] for alias in aliases if alias in columns)
        for name, aliases in COLUMN_NAMES.items()
        if not columns.keys().isdisjoint(aliases)
    }
    if "title" not in selected_columns or selected_columns.keys().isdisjoint(OPINION_COLUMNS):
        raise LikesError(
            f"{file}: the columns are {', '.join(map(str, columns.values()))}; expected title (or programme) "
            "and one of liked, rating, share"
        )
    return [{name: row.get(column) for name, column in selected_columns.items()} for row in rows]


def _read_rows(file: Path) -> Sequence[Mapping[str, Any]]:
    """Reads the rows of a CSV, Parquet or JSON file as dictionaries by name of the column."""
    suffix = file.suffix.lower()
    try:
        if suffix == ".parquet":
            return pq.read_table(file).to_pylist()
        text = file.read_text(encoding="utf-8-sig")
        if suffix == ".csv":
            return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=_find_delimiter(text)))
        if suffix in (".json", ".jsonl", ".ndjson"):
            if text.lstrip().startswith("["):
                rows = json.loads(text)
            else:
                # str.splitlines would also split at U+2028, which JSON strings may contain
                rows = [json.loads(line) for line in text.split("\n") if line.strip()]
            if not all(isinstance(row, dict) for row in rows):
                raise LikesError(f'{file}: expected objects, such as {{"title": "Tatort", "liked": true}}')
            return rows
    except (pa.ArrowInvalid, UnicodeDecodeError, json.JSONDecodeError, csv.Error) as error:
        raise LikesError(f"{file} cannot be read as {suffix[1:]}: {error}") from error
    except OSError as error:
        raise LikesError(f"{file} cannot be read: {error.strerror or error}") from error
    raise LikesError(
        f"{file} has an unknown format; expected .csv, .parquet, .json or .jsonl, or an export of a player "
        "(docs/tonight.md)"
    )


def _find_delimiter(text: str) -> str:
    """Returns the most frequent of comma, semicolon and tab in the first line of a CSV text."""
    return max(",;\t", key=text.partition("\n")[0].count)


def _to_opinions(file: Path, values: Sequence[Any], column: str) -> list[float | None]:
    """Converts the values of a column of opinions to numbers from -1 to 1, and empty values to None."""
    if column == "liked":
        return [_parse_liked(value, file, row_number) for row_number, value in enumerate(values, 1)]
    numbers = [_parse_number(value, column, file, row_number) for row_number, value in enumerate(values, 1)]
    ratings = [number for number in numbers if number is not None]
    minimum, maximum = min(ratings, default=0.0), max(ratings, default=0.0)
    if column == "share":
        low, high = 0.0, 1.0 if maximum <= 1 else 100.0
    else:
        low, high = (1.0, 5.0) if maximum <= 5 else (1.0, 10.0) if maximum <= 10 else (0.0, 100.0)
    if maximum > high or minimum < 0:
        raise LikesError(
            f"{file}: {column} goes from {minimum:g} to {maximum:g}; expected numbers from 0 to 100"
        )
    lower_bound = 0.0 if column == "share" else -1.0
    return [
        None if number is None else max(lower_bound, scale_to_opinion(number, low, high))
        for number in numbers
    ]


def scale_to_opinion(number: float, low: float, high: float) -> float:
    """Maps a number from [low, high] linearly to [-1, 1]; numbers outside are clipped."""
    return max(-1.0, min(1.0, (2 * number - low - high) / (high - low)))


def _parse_liked(value: Any, file: Path, row_number: int) -> float | None:
    """Converts a value of the column ``liked`` to 1 or -1; returns None for an empty value."""
    text = str(value).strip().casefold()
    if value is None or not text:
        return None
    if text not in YES_TEXTS + NO_TEXTS:
        raise LikesError(
            f"{file}, row {row_number}: liked is {value!r}; expected {', '.join(YES_TEXTS + NO_TEXTS)}"
        )
    return 1.0 if text in YES_TEXTS else -1.0


def _parse_number(value: Any, name: str, file: Path, row_number: int) -> float | None:
    """Converts a value of the column ``name`` to a finite number; returns None for an empty value."""
    if value is None or not str(value).strip():
        return None
    try:
        number = float(str(value).strip().removesuffix("%"))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise LikesError(f"{file}, row {row_number}: {name} is {value!r}; expected a number")
    return number


def _parse_time(
    value: Any, default_time: datetime.datetime, zone: datetime.tzinfo | None, file: Path, row_number: int
) -> datetime.datetime:
    """Converts ISO text, seconds since 1970 or a date to a naive datetime in UTC.

    Returns ``default_time`` for an empty value. ``zone`` is the zone of a time without a zone.
    """
    if value is None or not str(value).strip():
        return default_time
    try:
        if isinstance(value, datetime.datetime):
            moment = value
        elif isinstance(value, datetime.date):
            moment = datetime.datetime.combine(value, datetime.time())
        elif isinstance(value, int | float) or _is_seconds(str(value).strip()):
            moment = datetime.datetime.fromtimestamp(float(value), datetime.UTC)
        else:
            moment = datetime.datetime.fromisoformat(str(value).strip())
    except (ValueError, OverflowError, OSError) as error:
        raise LikesError(
            f"{file}, row {row_number}: time is {value!r}; expected an ISO date or instant, or seconds "
            "since 1970"
        ) from error
    return to_naive_utc(in_zone(moment, zone) if zone else moment)


def _is_seconds(text: str) -> bool:
    """Returns whether a time is a number of seconds. Eight digits are a date, such as 20250131."""
    return text.replace(".", "", 1).isdigit() and not (len(text) == 8 and text.isdigit())
