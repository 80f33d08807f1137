"""The time zone of a home, for its schedules, dates, evenings and airing hours.

``home.json`` stores the zone of the machine that created the home; ``guidespace zone NAME`` sets another one.
"""

import datetime
import zoneinfo
from pathlib import Path

from storage.errors import ExpectedError
from storage.home.marker import read_marker, write_marker

ZONE_KEY = "zone"  # in home.json


class ZoneError(ExpectedError, ValueError):
    """The name is not an IANA time zone."""


def machine_zone() -> str:
    """Returns the IANA name of the machine's zone (``TZ``, else the system's setting).

    Returns UTC if the zone is unknown, or if tzlocal is not installed, as on machines for training only.
    """
    try:
        from tzlocal import get_localzone_name
    except ImportError:
        return "UTC"
    name = get_localzone_name() or "UTC"
    return name if name in zoneinfo.available_timezones() else "UTC"


def home_zone(home: str | Path) -> zoneinfo.ZoneInfo:
    """Returns the zone of a home, or that of the machine if the home has none yet."""
    return read_zone(read_marker(Path(home).expanduser()).get(ZONE_KEY) or machine_zone())


def set_zone(home: Path, name: str) -> None:
    """Stores the zone of a home."""
    write_marker(home, **{ZONE_KEY: read_zone(name).key})


def in_zone(moment: datetime.datetime, zone: datetime.tzinfo) -> datetime.datetime:
    """Converts a datetime to a zone; a naive datetime is interpreted in that zone."""
    return moment.astimezone(zone) if moment.tzinfo else moment.replace(tzinfo=zone)


def read_zone(name: str) -> zoneinfo.ZoneInfo:
    """Returns the zone with an IANA name; raises ZoneError if there is none."""
    if name not in zoneinfo.available_timezones():
        raise ZoneError(f"{name!r} is not an IANA time zone; set one such as Europe/Paris: `guidespace zone`")
    return zoneinfo.ZoneInfo(name)
