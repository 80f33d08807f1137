"""The published folder that an earlier run left: what tonight's is made to resemble, never what it is computed from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

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


def newest_ancestor(workspace: Workspace, kind: type[A], base: str, suits: Callable[[dict[str, Any]], bool], accepts: Callable[[A], bool] = lambda artifact: True) -> A | None:
    """What tonight's artifact is made from: the newest that suits; None where there is none.

    A night that is repeated is made from what it was made from the first time, whatever came after it, so that it is found in the
    cache. Details of that kind say ``base`` and ``ancestor`` (path and digest, or None).

    Args:
        workspace: The home.
        kind: Of both.
        base: Key of what is equal in a repeated night.
        suits: Of the details of an artifact, before it is verified.
        accepts: Of the artifact, after that.
    """
    found = newest_details(workspace, kind)
    for key, details in found:
        if details.get("base") == base:
            recorded = details["ancestor"]
            if recorded is None:
                return None
            if (workspace.home / recorded["path"] / "artifact.json").exists() or workspace.read(kind, key) is not None:
                return kind(path=recorded["path"], digest=recorded["digest"])
    for key, details in found:
        if suits(details) and (artifact := workspace.read(kind, key)) is not None and accepts(artifact):
            return artifact
    return None


def newest_details(workspace: Workspace, kind: type[Artifact]) -> list[tuple[str, dict[str, Any]]]:
    """Key and details of every published artifact of that kind, the one published last first; none is verified."""
    files = [file for file in workspace.place(kind, "any").parent.glob("*/artifact.json") if file.parent.suffix != ".tmp"]
    return [(file.parent.name, _details(file)) for file in sorted(files, key=lambda file: file.stat().st_mtime_ns, reverse=True)]


def _details(file: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(file.read_text())["details"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}
