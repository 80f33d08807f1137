"""The published folder that an earlier run left: what tonight's is made to resemble, never what it is computed from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from storage.artifacts import Artifact
from storage.workspace import Workspace

A = TypeVar("A", bound=Artifact)


def newest_other(workspace: Workspace, kind: type[A], key: str) -> A | None:
    """The artifact of that kind published last under another key, if it is whole; None where there is none.

    Args:
        workspace: The home.
        kind: Its type.
        key: Tonight's own, which does not count: a repeated run sees the same yesterday as the first one.
    """
    folder = workspace.place(kind, key).parent
    own = folder / key / "artifact.json"
    before = own.stat().st_mtime_ns if own.exists() else None
    found = sorted(((file.stat().st_mtime_ns, file.parent.name) for file in folder.glob("*/artifact.json") if file.parent.suffix != ".tmp" and file != own), reverse=True)
    for written, name in found:
        if (before is None or written < before) and (artifact := workspace.read(kind, name)) is not None:
            return artifact
    return None


def newest_first(workspace: Workspace, kind: type[A]) -> Iterator[A]:
    """The whole artifacts of that kind, the one published last first."""
    files = workspace.place(kind, "any").parent.glob("*/artifact.json")
    for file in sorted(files, key=lambda file: file.stat().st_mtime_ns, reverse=True):
        if file.parent.suffix != ".tmp" and (artifact := workspace.read(kind, file.parent.name)) is not None:
            yield artifact
