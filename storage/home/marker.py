"""The file home.json of a home: layout version, time zone, id, and other facts that belong to the home."""

import json
from pathlib import Path
from typing import Any

from storage.json_file import write_json

MARKER = "home.json"


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
