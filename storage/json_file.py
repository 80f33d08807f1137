"""Text and JSON files that other programs read, replaced atomically."""

import json
from pathlib import Path

from storage.atomic import replaced_file


def write_json(path: Path, content: object, *, sort_keys: bool = False) -> None:
    """Replaces a JSON file as ``write_text`` does."""
    write_text(path, json.dumps(content, ensure_ascii=False, indent=1, sort_keys=sort_keys))


def write_text(path: Path, text: str) -> None:
    """Replaces a UTF-8 file; a full disk or a crash leaves the old one."""
    with replaced_file(path) as new:
        new.write_text(text, encoding="utf-8")
