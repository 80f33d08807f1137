"""Computes sizes and digests of files in a home."""

import functools
import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path


def folder_size(folder: Path) -> int:
    """Returns the total size of all files in a folder and its subfolders in bytes.

    Files that other processes remove meanwhile are ignored.
    """
    total = 0
    for file in (os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names):
        with suppress(OSError):
            total += os.lstat(file).st_size
    return total


def describe_file(file: Path, size: int | None = None) -> dict[str, object]:
    """Returns "size" and "sha256" of a file.

    If ``size`` is given and differs, the file is not read, and "sha256" is "".
    """
    stat = file.stat()
    if size is not None and stat.st_size != size:
        return {"size": stat.st_size, "sha256": ""}
    # timestamps have a resolution of a few ms, so a very recent file is not cached
    now = time.time_ns()
    version = stat.st_ctime_ns if now - stat.st_ctime_ns > 10**9 else now
    return {"size": stat.st_size, "sha256": _sha256(file, stat.st_ino, version)}


@functools.lru_cache(maxsize=1024)  # a nightly run verifies the same model three times
def _sha256(file: Path, inode: int, version: int) -> str:
    """Computes the SHA-256 of a file; ``inode`` and ``version`` (time of change) only serve as cache key."""
    with open(file, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
