"""Computes SHA-256 digests of files and folders, and hashes of texts.

Reading 7 GB takes about ten seconds, so the digests of files are cached in ``$XDG_CACHE_HOME/guidespace`` by
path, size, times and inode. The digest of a file that has changed within the last ten seconds is not cached,
because the times of the file may stay the same if it changes again.
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

_MIN_AGE_SECONDS = 10  # the digest of a file is cached if the last change was at least this long ago
ABSENT = "absent"  # digest of a missing file


def content_digest(path: str | Path) -> str:
    """Returns the hexadecimal SHA-256 of a file, or of the names and contents of the files in a folder.

    Returns "absent" if the path does not exist.
    """
    path = Path(path).absolute()
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        file_digests = [[file.relative_to(path).as_posix(), content_digest(file)] for file in files]
        return hashlib.sha256(json.dumps(file_digests).encode()).hexdigest()
    try:
        stat = path.stat()
    except OSError:
        return ABSENT
    cache_folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "guidespace" / "digests"
    cache_file = cache_folder / f"{hashlib.sha256(str(path).encode()).hexdigest()}.json"
    # includes st_ctime_ns, because programs can set st_mtime_ns, but not st_ctime_ns
    file_state = [str(path), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]
    with suppress(OSError, ValueError, TypeError):  # the cache file is missing or damaged
        *cached_state, digest = json.loads(cache_file.read_text(encoding="utf-8"))
        if cached_state == file_state:
            return str(digest)
    with open(path, "rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
    if time.time() - stat.st_mtime > _MIN_AGE_SECONDS:
        with suppress(OSError):  # the cache folder is not writable
            cache_folder.mkdir(parents=True, exist_ok=True)
            write_json(cache_file, [*file_state, digest])
    return digest


def hashes(texts: Iterable[str], salt: str) -> np.ndarray:
    """Maps each text to a pseudo-random number in [0, 1): float64 (texts,).

    The numbers depend only on text and salt, so they are equal on all machines.
    """
    key = salt.encode()[:64]
    digests = (hashlib.blake2b(text.encode(), digest_size=8, key=key).digest() for text in texts)
    return np.fromiter((int.from_bytes(digest, "little") / 2**64 for digest in digests), dtype=np.float64)
