"""XMLTV times to UTC: ``YYYYMMDD[hh[mm[ss]]]``, then nothing, an offset or the name of a zone.

No zone means the feed's own, which is UTC (xmltv.dtd) unless settings say otherwise. Understood are ``+0100``, ``+01:00``, ``+01`` and ``-5``, ``Z``, the abbreviations below,
and names such as ``Europe/Paris``. Offsets beyond those in use on Earth (-12:00 to +14:00) make the whole time
unreadable: the instant meant is unknown, and a programme hours off would be worse than a recorded reject. 24:00:00 is
midnight at the day's end. Abbreviations that mean several zones (IST) are not guessed.
Of the hour that comes twice when summer time ends the first is meant; a time in the hour that summer time leaves out
counts on from before it (02:30 is 03:30).
"""

from __future__ import annotations

import datetime
import re
import zoneinfo
from functools import lru_cache

_FORM = re.compile(r"(\d{4})(\d\d)(\d\d)(?:(\d\d)(?:(\d\d)(\d\d)?)?)?\s*(\S*)", re.ASCII)
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d\d))?", re.ASCII)
_EPOCH = datetime.date(1970, 1, 1).toordinal()
FIRST_YEAR, LAST_YEAR = 1900, 2199
_HOURS = {  # abbreviation -> hours east of Greenwich
    "": 0, "Z": 0, "UTC": 0, "UT": 0, "GMT": 0, "WET": 0, "WEST": 1, "BST": 1, "CET": 1, "MET": 1, "CEST": 2, "MEST": 2, "EET": 2, "EEST": 3, "MSK": 3,
    "SAST": 2, "AWST": 8, "ACST": 9.5, "ACDT": 10.5, "AEST": 10, "AEDT": 11, "NZST": 12, "NZDT": 13, "JST": 9, "KST": 9, "HKT": 8, "SGT": 8,
    "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "AKST": -9, "AKDT": -8, "HST": -10, "BRT": -3, "ART": -3,
}  # fmt: skip


@lru_cache(maxsize=65_536)  # a month has some 9,000 distinct starts, each on hundreds of channels
def parse_time(text: str, zone: str = "") -> int | None:
    """Microseconds since 1970-01-01T00:00 UTC, or None when the text is no XMLTV time.

    Args:
        text: As in the attribute: ``20250331193000 +0100``.
        zone: What a time without a zone is in, written as there: ``Europe/Paris``. Empty is UTC.
    """
    match = _FORM.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    if not FIRST_YEAR <= year <= LAST_YEAR or minute > 59 or second > 59 or hour * 3600 + minute * 60 + second > 86_400:
        return None
    try:
        days = datetime.date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        return None
    seconds = days * 86_400 + hour * 3600 + minute * 60 + second
    offset = _offset_seconds(match[7] or zone, seconds)
    return None if offset is None else (seconds - offset) * 1_000_000


def _offset_seconds(zone: str, local_seconds: int) -> int | None:
    """Seconds east of Greenwich of a zone as written, at a local time; None when it is unknown or implausible."""
    hours = _HOURS.get(zone.upper())
    if hours is not None:
        return int(hours * 3600)
    match = _OFFSET.fullmatch(zone.upper())
    if match is not None:
        minutes = int(match[2]) * 60 + int(match[3] or 0)
        minutes = -minutes if match[1] == "-" else minutes
        return minutes * 60 if -12 * 60 <= minutes <= 14 * 60 and int(match[3] or 0) < 60 else None
    if "/" not in zone:
        return None
    try:
        rules = zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None
    local = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=local_seconds)
    offset = local.replace(tzinfo=rules).utcoffset()
    return None if offset is None else int(offset.total_seconds())


def is_zone(text: str) -> bool:
    """Whether it is an offset, an abbreviation or a name that times may have."""
    return _offset_seconds(text, 0) is not None
