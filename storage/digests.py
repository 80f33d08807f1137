"""Digests of files that settings name, cached while a file's size and times of change stay; hashes of texts.

Reading 7 GB takes some ten seconds, so digests are kept in the user's cache folder
(``$XDG_CACHE_HOME/guidespace``); not of a file that changed within the last seconds: another change might
leave its time of change as it is.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import numpy as np

from storage.json_file import write_json

_SETTLED_SECONDS = 10
ABSENT = "absent"


def content_digest(path: str | Path) -> str:
    """Hexadecimal SHA-256 of a file's content, or of a folder's names and contents, or "absent"."""
    place = Path(path).absolute()
    if place.is_dir():
        files = sorted(file for file in place.rglob("*") if file.is_file())
        parts = [[file.relative_to(place).as_posix(), content_digest(file)] for file in files]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    try:
        stat = place.stat()
    except OSError:
        return ABSENT
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "guidespace" / "digests"
    note = cache / f"{hashlib.sha256(str(place).encode()).hexdigest()}.json"
    seen = [
        str(place),
        stat.st_size,
        stat.st_mtime_ns,
        stat.st_ctime_ns,
        stat.st_ino,
    ]  # ctime: nobody can set
    with suppress(OSError, ValueError, TypeError):  # nothing cached, or damaged: the content is read again
        *before, digest = json.loads(note.read_text(encoding="utf-8"))
        if before == seen:
            return str(digest)
    with open(place, "rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
    if time.time() - stat.st_mtime > _SETTLED_SECONDS:
        with suppress(OSError):  # no writable cache: the file is read again next time
            cache.mkdir(parents=True, exist_ok=True)
            write_json(note, [*seen, digest])
    return digest


def hashes(texts: Iterable[str], salt: str) -> np.ndarray:
    """A number in [0, 1) for each text, the same on every machine."""
    key = salt.encode()[:64]
    digests = (hashlib.blake2b(text.encode(), digest_size=8, key=key).digest() for text in texts)
    return np.fromiter((int.from_bytes(digest, "little") / 2**64 for digest in digests), dtype=np.float64)
