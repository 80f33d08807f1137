"""Files that other programs read, written whole or not at all."""

import json
import os
import shutil
from pathlib import Path


def write_json(path: Path, content: object, *, sort_keys: bool = False) -> None:
    """Replaces a JSON file as ``write_text`` does."""
    write_text(path, json.dumps(content, ensure_ascii=False, indent=1, sort_keys=sort_keys))


def write_text(path: Path, text: str) -> None:
    """Replaces a file atomically and syncs it to disk; a full disk leaves the old one."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")  # two processes may write one file at once
    try:
        with open(temporary, "w", encoding="utf-8") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def copy_unless_there(source: Path, target: Path) -> None:
    """Copies a file whole or not at all; where another process was faster, its file stays."""
    temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        shutil.copyfile(source, temporary)
        if not target.exists():
            temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
