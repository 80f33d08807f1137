"""The id of a home, stored in home.json on first use, so that several homes can share one MLflow server.

The id is the folder's name with eight random digits, such as "home-3fa2b1c4". A moved home keeps its id. A
copy gets a new one: home.json contains the folder that last used the id, and that folder still has the id.
"""

import re
import uuid
from contextlib import suppress
from pathlib import Path

from storage.home.marker import read_marker, write_marker
from storage.home.workspace import Workspace


def read_home_id(home: Path) -> str:
    """Returns the id of a home; empty if it has none yet or is a copy. Writes nothing."""
    marker = read_marker(home)
    last_user = Path(marker.get("folder", home))
    with suppress(OSError):  # last_user is missing or unreadable
        has_same_id = read_marker(last_user).get("id") == marker.get("id")
        if last_user != home and has_same_id and not last_user.samefile(home):
            return ""
    return str(marker.get("id", ""))


def make_home_id(home: Path) -> str:
    """Returns the id of a home; creates it if the home has none yet."""
    Workspace(home)
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", home.name)[:60]
    home_id = read_home_id(home) or f"{name}-{uuid.uuid4().hex[:8]}"
    write_marker(home, id=home_id, folder=str(home))
    return home_id
