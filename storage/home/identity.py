"""The id of a home, kept in home.json from its first use: several homes may share one MLflow server.

It is the folder's name and eight random digits, "home-3fa2b1c4". A home that moves keeps it; a copy
gets its own: home.json names the folder that last used the id, and its home.json still has that id.
"""

import re
import uuid
from contextlib import suppress
from pathlib import Path

from storage.home.marker import read_marker, write_marker
from storage.home.workspace import Workspace


def read_home_id(home: Path) -> str:
    """The id of a home; empty where it has none yet. Writes nothing."""
    marker = read_marker(home)
    other = Path(marker.get("folder", home))
    with suppress(OSError):  # the other folder is gone or unreadable
        if other != home and read_marker(other).get("id") == marker.get("id") and not other.samefile(home):
            return ""
    return str(marker.get("id", ""))


def make_home_id(home: Path) -> str:
    """The id of a home, made where it has none yet."""
    Workspace(home)
    found = read_home_id(home) or f"{re.sub(r'[^A-Za-z0-9_.-]', '_', home.name)[:60]}-{uuid.uuid4().hex[:8]}"
    write_marker(home, id=found, folder=str(home))
    return found
