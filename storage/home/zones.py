"""Reads and sets the time zone of a home, in which schedules, dates and local hours are computed.

``home.json`` stores the time zone. It is the zone of the machine that created the home, until the command
``guidespace zone NAME`` sets another one.
"""

import datetime
import zoneinfo
from pathlib import Path

from storage.errors import ExpectedError
from storage.home.marker import read_marker, write_marker

ZONE_KEY = "zone"  # in home.json


class ZoneError(ExpectedError, ValueError):
    """Error: a name is not an IANA time zone."""


def machine_zone() -> str:
    """Returns the IANA name of the machine's time zone: the variable ``TZ``, else the system's setting.

    Returns UTC if the zone is unknown or if tzlocal is not installed, as on machines that only train models.
    """
    try:
        from tzlocal import get_localzone_name
    except ImportError:
        return "UTC"
    name = get_localzone_name() or "UTC"
    return name if name in zoneinfo.available_timezones() else "UTC"


def home_zone(home: str | Path) -> zoneinfo.ZoneInfo:
    """Returns the time zone of a home, or of the machine if the home has none yet."""
    return read_zone(read_marker(Path(home).expanduser()).get(ZONE_KEY) or machine_zone())


def set_zone(home: Path, name: str) -> None:
    """Stores ``name`` as the time zone of a home; raises ZoneError if it is not an IANA name."""
    write_marker(home, **{ZONE_KEY: read_zone(name).key})


def in_zone(moment: datetime.datetime, zone: datetime.tzinfo) -> datetime.datetime:
    """Converts a datetime to ``zone``. A naive datetime is a local time in ``zone`` already."""
    return moment.astimezone(zone) if moment.tzinfo else moment.replace(tzinfo=zone)


def read_zone(name: str) -> zoneinfo.ZoneInfo:
    """Returns the time zone with the IANA name ``name``; raises ZoneError if there is no such zone."""
    if name not in zoneinfo.available_timezones():
        problem = f"{name!r} is not an IANA time zone"
        raise ZoneError(f"{problem}; set one such as Europe/Paris: `guidespace zone Europe/Paris`")
    return zoneinfo.ZoneInfo(name)
