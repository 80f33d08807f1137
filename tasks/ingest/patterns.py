"""The files that a glob pattern matches: ``**`` enters a folder once, however many links lead to it."""

from __future__ import annotations

import glob
import os
from collections import deque
from collections.abc import Iterable, Iterator


def files_of(pattern: str) -> list[str]:
    """Files, sorted by name. Python's own ``**`` follows a link to a folder above it 40 times."""
    before, double_star, after = pattern.partition("**")
    if (
        not double_star
        or (before and not before.endswith(os.sep))
        or (after and not after.startswith(os.sep))
    ):
        return sorted(filter(os.path.isfile, glob.glob(pattern)))  # a ** inside of a name is a *
    bases = glob.glob(before) if before else [""]
    found: dict[str, None] = {}
    for folder in _folders(sorted(bases)):
        found.update(
            (file, None) for file in files_of(os.path.join(glob.escape(folder), after.lstrip(os.sep) or "*"))
        )
    return sorted(found)


def _folders(bases: Iterable[str]) -> Iterator[str]:
    """The folders and all below them but hidden ones, each once; by a link if no other name leads there."""
    seen: set[str] = set()
    linked = deque(bases)
    while linked:
        near = [linked.popleft()]
        while near:
            folder = near.pop()
            if (real := os.path.realpath(folder)) in seen:
                continue
            seen.add(real)
            yield folder
            try:
                below = sorted(os.scandir(folder or "."), key=lambda entry: entry.name)
            except OSError:  # not to be read; glob passes over it too
                continue
            for entry in below:
                if entry.is_dir() and not entry.name.startswith("."):
                    (linked if entry.is_symlink() else near).append(os.path.join(folder, entry.name))
