"""Converts XMLTV times to UTC: ``YYYYMMDD[hh[mm[ss]]]``, optionally followed by an offset or a time zone.

A time without a zone is in the zone of the feed: UTC (xmltv.dtd) unless ``ingest.zones`` sets another zone.
Valid zones are ``+0100``, ``+01:00``, ``+01``, ``-5``, ``Z``, the abbreviations below, and names such as
``Europe/Paris``. A time with an offset outside -12:00 to +14:00 or with an ambiguous abbreviation (IST) is
invalid, because rejecting a programme is better than storing it at a wrong time. 24:00:00 is midnight at the
end of the day. When summer time ends, a time in the repeated hour means the first occurrence. When summer
time begins, a time in the skipped hour is shifted (02:30 becomes 03:30).
"""

import datetime
import re
import zoneinfo
from functools import lru_cache

_TIME = re.compile(r"(\d{4})(\d\d)(\d\d)(?:(\d\d)(?:(\d\d)(\d\d)?)?)?\s*(\S*)", re.ASCII)
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d\d))?", re.ASCII)
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_FIRST_YEAR, _LAST_YEAR = 1900, 2199
_ZONE_HOURS = {  # abbreviation of a time zone -> hours ahead of UTC
    "": 0, "Z": 0, "UTC": 0, "UT": 0, "GMT": 0, "WET": 0, "WEST": 1, "BST": 1, "CET": 1, "MET": 1,
    "CEST": 2, "MEST": 2, "EET": 2, "EEST": 3, "MSK": 3, "SAST": 2, "AWST": 8, "ACST": 9.5, "ACDT": 10.5,
    "AEST": 10, "AEDT": 11, "NZST": 12, "NZDT": 13, "JST": 9, "KST": 9, "HKT": 8, "SGT": 8, "EST": -5,
    "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "AKST": -9, "AKDT": -8,
    "HST": -10, "BRT": -3, "ART": -3,
}  # fmt: skip


@lru_cache(maxsize=65_536)  # a month has about 9,000 distinct starts
def parse_time(text: str, zone: str = "") -> int | None:
    """Converts an XMLTV time to microseconds since 1970-01-01T00:00 UTC. Returns None for other texts.

    Args:
        text: Time such as ``20250331193000 +0100``.
        zone: Time zone of a text without offset and zone, such as ``Europe/Paris``; empty means UTC.
    """
    match = _TIME.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    seconds = hour * 3600 + minute * 60 + second
    if not _FIRST_YEAR <= year <= _LAST_YEAR or minute > 59 or second > 59 or seconds > 86_400:
        return None
    try:
        seconds += (datetime.date(year, month, day).toordinal() - _EPOCH) * 86_400
    except ValueError:
        return None
    offset = _parse_zone(match[7] or zone)
    if isinstance(offset, zoneinfo.ZoneInfo):
        local_time = datetime.datetime(1970, 1, 1, tzinfo=offset) + datetime.timedelta(seconds=seconds)
        offset = int(local_time.utcoffset().total_seconds())  # pyright: ignore[reportOptionalMemberAccess]
    return None if offset is None else (seconds - offset) * 1_000_000


def is_zone(text: str) -> bool:
    """Returns whether a text is a valid time zone: an offset, an abbreviation or a name."""
    return _parse_zone(text) is not None


@lru_cache(maxsize=1024)
def _parse_zone(text: str) -> int | zoneinfo.ZoneInfo | None:
    """Returns a time zone as seconds ahead of UTC or as a named zone; None if the text is not a time zone."""
    if (hours := _ZONE_HOURS.get(text.upper())) is not None:
        return int(hours * 3600)
    if match := _OFFSET.fullmatch(text.upper()):
        minutes = (int(match[2]) * 60 + int(match[3] or 0)) * (-1 if match[1] == "-" else 1)
        return minutes * 60 if -12 * 60 <= minutes <= 14 * 60 and int(match[3] or 0) < 60 else None
    try:
        return zoneinfo.ZoneInfo(text) if "/" in text else None
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None
