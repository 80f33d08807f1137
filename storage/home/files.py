"""Computes sizes and digests of files in a home; reads and sets the times of the last use of artifacts."""

import functools
import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path


def folder_size(folder: Path) -> int:
    """Returns the total size in bytes of all files in a folder and its subfolders.

    Files that other processes remove during the call are ignored.
    """
    total = 0
    for file in (os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names):
        with suppress(OSError):
            total += os.lstat(file).st_size
    return total


def describe_file(file: Path, expected_size: int | None = None) -> dict[str, object]:
    """Returns a dictionary with the "size" (bytes) and the "sha256" of a file.

    If the file does not have the ``expected_size``, it is not read, and "sha256" is "".
    """
    stat = file.stat()
    if expected_size is not None and stat.st_size != expected_size:
        return {"size": stat.st_size, "sha256": ""}
    # The digest of a file that changed in the last second is not cached: the file may change again without a
    # new timestamp, because timestamps have a resolution of a few ms.
    now = time.time_ns()
    version = stat.st_ctime_ns if now - stat.st_ctime_ns > 10**9 else now
    return {"size": stat.st_size, "sha256": _sha256(file, stat.st_ino, version)}


@functools.lru_cache(maxsize=1024)  # a nightly run verifies the same model three times
def _sha256(file: Path, inode: int, version: int) -> str:
    """Computes the SHA-256 of a file. The cache key includes ``inode`` and ``version`` (time of change)."""
    with open(file, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def mark_used(folder: Path) -> None:
    """Sets the time of the last use of the artifact in a folder to now."""
    with suppress(OSError):  # read-only for this user
        os.utime(folder)


def last_used(folder: Path) -> int:
    """Returns the time of the last use of the artifact in a folder, in nanoseconds since 1970."""
    return max(folder.stat().st_mtime_ns, (folder / "artifact.json").stat().st_mtime_ns)
