"""Reads and writes ``home.json``: the layout version, time zone, id and other properties of a home."""

import json
from pathlib import Path
from typing import Any

from storage.json_file import write_json

MARKER_FILE = "home.json"


def is_home(folder: Path) -> bool:
    """Returns whether a folder is a home."""
    return (folder / MARKER_FILE).exists()


def read_marker(home: Path) -> dict[str, Any]:
    """Reads the properties of a home from home.json; returns {} if the file is missing or damaged."""
    try:
        return dict(json.loads((home / MARKER_FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def write_marker(home: Path, **properties: str) -> None:
    """Sets properties in home.json atomically; does not write the file if it already has these values."""
    stored_properties = read_marker(home)
    if stored_properties | properties != stored_properties:
        write_json(home / MARKER_FILE, stored_properties | properties, sort_keys=True)
