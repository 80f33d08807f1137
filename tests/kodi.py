"""A headless Kodi that reads a guide with the add-on IPTV Simple Client.

Needs the Debian packages kodi, kodi-pvr-iptvsimple, xauth and xvfb. What Kodi has read is in its database.
"""

import datetime
import os
import re
import shutil
import sqlite3
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

import httpx

from tests.ports import free_port
from tests.servers import running, wait_for

PROGRAMS = {"kodi": "kodi", "xvfb-run": "xvfb", "xauth": "xauth"}  # Debian packages
ADDON = Path("/usr/share/kodi/addons/pvr.iptvsimple")
COLOURED = range(0x10, 0x100)  # genre types of DVB; 0 and 0x100 (a text) have no colour
SECONDS, POLL_SECONDS, POLLS = 200, 3.0, 7  # Kodi may pause for ten seconds while it stores programmes
_WEB_SERVER = """<advancedsettings><services><webserver>true</webserver><webserverport>{}</webserverport>
<webserverauthentication>false</webserverauthentication></services></advancedsettings>
"""
_TITLED = """
    SELECT sName, sTitle, iGenreType
    FROM epgtags
    JOIN epg USING (idEpg)
    WHERE sTitle <> ''
"""  # gaps have no title
_ENABLE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "Addons.SetAddonEnabled",
    "params": {"addonid": "pvr.iptvsimple", "enabled": True},
}


def missing_packages() -> list[str]:
    """Debian packages that are not installed."""
    missing = [package for program, package in PROGRAMS.items() if not shutil.which(program)]
    return missing + ([] if ADDON.is_dir() else ["kodi-pvr-iptvsimple"])


def shift_days(guide: bytes, day: datetime.date) -> bytes:
    """Moves the times of a guide by a number of days, so that its first programme starts on ``day``."""
    first = min(re.findall(rb'start="(\d{8})', guide)).decode()
    shift = day - datetime.datetime.strptime(first, "%Y%m%d").date()

    def move(match: re.Match[bytes]) -> bytes:
        try:
            date = datetime.datetime.strptime(match[2].decode(), "%Y%m%d").date() + shift
        except ValueError:  # an invalid date stays
            return match[0]
        return match[1] + date.strftime("%Y%m%d").encode()

    return re.sub(rb'((?:start|stop)=")(\d{8})', move, guide)


class Stored(NamedTuple):
    """A programme in Kodi's database."""

    channel: str  # name in the playlist
    title: str
    genre: int  # genre type of DVB


def playlist_of(channels: Iterable[tuple[str, str]]) -> str:
    """Returns an M3U playlist of channels, each an id and a name."""
    entries = (
        f"#EXTINF:-1 tvg-id={quoteattr(id_)},{name}\nhttp://127.0.0.1:9/{number}\n"
        for number, (id_, name) in enumerate(channels)
    )
    return "#EXTM3U\n" + "".join(entries)


def read_with_kodi(home: Path, guide: Path, playlist: str, genres: Path | None = None) -> list[Stored]:
    """Returns the programmes that Kodi stores when it has read a guide.

    Args:
        home: Empty folder for Kodi's files.
        guide: XMLTV file with programmes from yesterday to a few days ahead.
        playlist: Content of an M3U file.
        genres: Table of genres; None for that of the add-on.
    """
    port, log = free_port(), home / "kodi.out"
    _write_settings(home, guide, playlist, genres, port)
    environment = {**os.environ, "HOME": str(home), "LIBGL_ALWAYS_SOFTWARE": "1", "KODI_AE_SINK": "NULL"}
    command = ["xvfb-run", "-a", "-s", "-screen 0 640x360x24", "kodi", "--standalone"]
    counts: list[int] = []

    def explain() -> str:
        kodi_log = home / ".kodi/temp/kodi.log"
        return kodi_log.read_text("utf-8", "replace") if kodi_log.exists() else log.read_text("utf-8")

    def is_stored() -> bool:
        time.sleep(POLL_SECONDS)
        counts.append(len(_read_rows(home)))
        return counts[-1] > 0 and counts[-1:] * POLLS == counts[-POLLS:]

    with running(command, log, environment, home):
        wait_for(lambda: _enables_addon(port), SECONDS, explain)
        wait_for(is_stored, SECONDS, explain)
        return _read_rows(home)


def _write_settings(home: Path, guide: Path, playlist: str, genres: Path | None, port: int) -> None:
    data = home / ".kodi/userdata/addon_data/pvr.iptvsimple"
    data.mkdir(parents=True)
    file = home / "channels.m3u"
    file.write_text(playlist, encoding="utf-8")
    settings = {
        "kodi_addon_instance_name": "test",
        "kodi_addon_instance_enabled": "true",
        "m3uPathType": "0",
        "m3uPath": file,
        "epgPathType": "0",
        "epgPath": guide,
        "genresPathType": "0",
        "genresPath": genres or "",
    }
    items = "".join(f'<setting id="{key}">{escape(str(value))}</setting>' for key, value in settings.items())
    for file in ("instance-settings-1.xml", "settings.xml"):
        (data / file).write_text(f'<settings version="2">{items}</settings>', encoding="utf-8")
    (home / ".kodi/userdata/advancedsettings.xml").write_text(_WEB_SERVER.format(port), encoding="utf-8")


def _enables_addon(port: int) -> bool:
    try:
        answer = httpx.post(f"http://127.0.0.1:{port}/jsonrpc", json=_ENABLE)
    except httpx.HTTPError:  # still starting
        return False
    return answer.json().get("result") == "OK"


def _read_rows(home: Path) -> list[Stored]:
    """Returns the stored programmes; the database appears while Kodi starts."""
    for file in (home / ".kodi/userdata/Database").glob("Epg*.db"):
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
            try:
                return [Stored(*row) for row in connection.execute(_TITLED)]
            except sqlite3.OperationalError:
                return []
    return []
