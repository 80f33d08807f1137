"""The id of a home, kept in home.json from its first use: several homes may share one MLflow server.

It is the folder's name and eight random digits, "home-3fa2b1c4". A home that moves keeps it; a copy
gets its own: home.json names the folder that last used the id, and its home.json still has that id.
"""

import json
import re
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from storage.json_file import write_json
from storage.workspace import Workspace

MARKER = "home.json"


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


def read_marker(home: Path) -> dict[str, Any]:
    """The content of home.json; empty where there is none."""
    try:
        return dict(json.loads((home / MARKER).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def write_marker(home: Path, **facts: str) -> None:
    """Adds facts to home.json, atomically; does not touch a file that holds them already."""
    before = read_marker(home)
    if before | facts != before:
        write_json(home / MARKER, before | facts, sort_keys=True)
