"""Writes text and JSON files atomically, and reads JSON files that may be missing."""

import json
from pathlib import Path
from typing import Any

from storage.atomic import replaced_file


def read_json_if_exists(path: Path) -> Any:
    """Reads a JSON file; returns None if the file does not exist."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def write_json(path: Path, content: object, *, sort_keys: bool = False) -> None:
    """Writes ``content`` as JSON to the file ``path``. An existing file is replaced atomically."""
    write_text(path, json.dumps(content, ensure_ascii=False, indent=1, sort_keys=sort_keys))


def write_text(path: Path, text: str) -> None:
    """Writes ``text`` as UTF-8 to the file ``path``. An existing file is replaced atomically."""
    with replaced_file(path) as new_file:
        new_file.write_text(text, encoding="utf-8")
