"""What is in a file that a setting names: a digest of its content, remembered while size and time of change stay.

A stage that reads a model file of gigabytes is cached on what the file holds, not on how it is called. Reading 7 GB takes
some ten seconds, so a digest is kept in the user's cache folder (``$XDG_CACHE_HOME/guidespace``). A file that was changed
within the last seconds is not remembered: its time of change could stay the same through another change.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

_SETTLED_SECONDS = 10
ABSENT = "absent"


def content_digest(path: str | Path) -> str:
    """Hexadecimal SHA-256 of a file's content, or of a folder's (names and contents); "absent" where there is none."""
    place = Path(path).absolute()
    if place.is_dir():
        parts = [[file.relative_to(place).as_posix(), content_digest(file)] for file in sorted(place.rglob("*")) if file.is_file()]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    try:
        stat = place.stat()
    except OSError:
        return ABSENT
    seen = [str(place), stat.st_size, stat.st_mtime_ns, stat.st_ino]
    note = _notes() / f"{hashlib.sha256(str(place).encode()).hexdigest()}.json"
    remembered = _read(note)
    if remembered is not None and remembered[:-1] == seen:
        return str(remembered[-1])
    with open(place, "rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
    if time.time() - stat.st_mtime > _SETTLED_SECONDS:
        _write(note, [*seen, digest])
    return digest


def _notes() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "guidespace" / "digests"


def _write(note: Path, content: list[object]) -> None:
    fresh = note.with_name(f"{note.name}.{os.getpid()}.tmp")
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(json.dumps(content))
        os.replace(fresh, note)
    except OSError:  # no place to remember: the file is read again next time
        return


def _read(note: Path) -> list[object] | None:
    try:
        return list(json.loads(note.read_text()))
    except (OSError, ValueError, TypeError):  # nothing remembered, or not by us: the content is read again
        return None
