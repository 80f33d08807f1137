"""Reads and creates the id of a home, which distinguishes homes that share an MLflow server.

The id is the name of the folder and eight random digits, such as "home-3fa2b1c4". It is stored in home.json
with the path of the folder. A home keeps its id when it is moved. A copy gets a new id; a home is a copy if
the folder at the stored path still has the same id.
"""

import re
import uuid
from contextlib import suppress
from pathlib import Path

from storage.home.marker import read_marker, write_marker
from storage.home.workspace import Workspace


def read_home_id(home: Path) -> str:
    """Returns the id of a home, or '' if the home has no id yet or is a copy. Writes nothing."""
    marker = read_marker(home)
    last_user = Path(marker.get("folder", home))
    with suppress(OSError):  # last_user is missing or unreadable
        has_same_id = read_marker(last_user).get("id") == marker.get("id")
        if last_user != home and has_same_id and not last_user.samefile(home):
            return ""
    return str(marker.get("id", ""))


def make_home_id(home: Path) -> str:
    """Returns the id of a home. Creates and stores a new id if the home has none or is a copy."""
    Workspace(home)
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", home.name)[:60]
    home_id = read_home_id(home) or f"{name}-{uuid.uuid4().hex[:8]}"
    write_marker(home, id=home_id, folder=str(home))
    return home_id
