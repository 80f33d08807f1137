"""Atomic writing of text and JSON files."""

import json
from pathlib import Path

from storage.atomic import replaced_file


def write_json(path: Path, content: object, *, sort_keys: bool = False) -> None:
    """Atomically replaces a JSON file."""
    write_text(path, json.dumps(content, ensure_ascii=False, indent=1, sort_keys=sort_keys))


def write_text(path: Path, text: str) -> None:
    """Atomically replaces a UTF-8 file."""
    with replaced_file(path) as new:
        new.write_text(text, encoding="utf-8")
