"""The time zone of a home: of its schedules, dates, evenings, and the hours at which its titles air.

``home.json`` has it: the machine's zone when the home was made, until ``guidespace zone NAME`` sets another.
"""

import datetime
import zoneinfo
from pathlib import Path

from storage.errors import ExpectedError
from storage.home.marker import read_marker, write_marker

KEY = "zone"  # in home.json


class ZoneError(ExpectedError, ValueError):
    """No time zone has that name."""


def machine_zone() -> str:
    """IANA name of the machine's zone (``TZ``, else the system's setting); UTC if it has none.

    UTC also where tzlocal is not installed, as on a machine that only trains.
    """
    try:
        from tzlocal import get_localzone_name
    except ImportError:
        return "UTC"
    name = get_localzone_name() or "UTC"
    return name if name in zoneinfo.available_timezones() else "UTC"


def home_zone(home: str | Path) -> zoneinfo.ZoneInfo:
    """The zone of a home; the machine's, which it will get, if it has none yet."""
    return _zone(read_marker(Path(home).expanduser()).get(KEY) or machine_zone())


def set_zone(home: Path, name: str) -> None:
    """Stores the zone of a home."""
    write_marker(home, **{KEY: _zone(name).key})


def in_zone(moment: datetime.datetime, zone: datetime.tzinfo) -> datetime.datetime:
    """The same instant in a zone; a moment without a zone is of that zone."""
    return moment.astimezone(zone) if moment.tzinfo else moment.replace(tzinfo=zone)


def _zone(name: str) -> zoneinfo.ZoneInfo:
    if name not in zoneinfo.available_timezones():
        raise ZoneError(f"{name!r} is no IANA time zone; set one such as Europe/Paris by `guidespace zone`")
    return zoneinfo.ZoneInfo(name)
