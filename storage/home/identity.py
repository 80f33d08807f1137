"""Reads and creates the id of a home, which distinguishes homes that share an MLflow server.

The id is the name of the folder and eight random digits, such as "home-3fa2b1c4". home.json stores the id and
the path of the folder. A home that is moved keeps its id, and a copy gets a new one. A home is a copy if the
folder at the stored path still exists and has the same id.
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
    previous_folder = Path(marker.get("folder", home))
    with suppress(OSError):  # previous_folder is missing or unreadable
        has_same_id = read_marker(previous_folder).get("id") == marker.get("id")
        if previous_folder != home and has_same_id and not previous_folder.samefile(home):
            return ""
    return str(marker.get("id", ""))


def make_home_id(home: Path) -> str:
    """Returns the id of a home. Creates and stores a new id if the home has none or is a copy."""
    Workspace(home)
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", home.name)[:60]
    home_id = read_home_id(home) or f"{name}-{uuid.uuid4().hex[:8]}"
    write_marker(home, id=home_id, folder=str(home))
    return home_id
