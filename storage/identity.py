"""Which home this is, where several homes share one MLflow server: an id, kept in home.json from its first use.

It is the folder's name, for people, and eight random digits: "guidespace-home-3fa2b1c4". A home that moves keeps
it. A copy that stands beside the home it was made from gets an id of its own: home.json also holds the folder that
the id was made or last used in, and if another home.json with that id is still there, this one is the copy.
"""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path
from typing import Any

from storage.json_file import write_json
from storage.workspace import Workspace

MARKER = "home.json"


def read_home_id(home: Path) -> str:
    """The id of a home; empty where it has none yet. Writes nothing."""
    told = read_marker(home)
    return "" if _is_copy(home, told) else str(told.get("id", ""))


def make_home_id(home: Path) -> str:
    """The id of a home, made where it has none yet; for whoever may write to it."""
    Workspace(home)
    found = read_home_id(home) or f"{re.sub(r'[^A-Za-z0-9_.-]', '_', home.name)[:60]}-{uuid.uuid4().hex[:8]}"
    write_marker(home, id=found, folder=str(home))
    return found


def read_marker(home: Path) -> dict[str, Any]:
    """What home.json holds; nothing where there is none."""
    try:
        return dict(json.loads((home / MARKER).read_text()))
    except (OSError, ValueError, TypeError):
        return {}


def write_marker(home: Path, **facts: str) -> None:
    """Adds facts to home.json, atomically; the file is left alone where it holds them."""
    before = read_marker(home)
    if before | facts != before:
        write_json(home / MARKER, before | facts, sort_keys=True)


def _is_copy(home: Path, told: dict[str, Any]) -> bool:
    """Whether the home that this id belongs to is still in its place, and is another one."""
    other = Path(told.get("folder", home))
    try:
        return other != home and read_marker(other).get("id") == told.get("id") and not other.samefile(home)
    except OSError:
        return False
