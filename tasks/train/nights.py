"""Which night's checkpoint tonight's training starts from: the newest scored one of another Corpus and of its lineage (design rule 6).

A Checkpoint's details say: ``corpus`` (digest of what it was trained on), ``lineage`` (tasks/tokenize/growth.py), ``ancestor`` (path and
digest of the checkpoint that it was given to start from, or None) and ``started`` (how it started, in words). Scores repeat the digest of
the checkpoint that they are of.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from storage.artifacts import Checkpoint, Corpus, Scores
from storage.workspace import Workspace


def find_checkpoint(workspace: Workspace, base: str, corpus: Corpus) -> Checkpoint | None:
    """What tonight's training starts from; None where there is nothing.

    A night that is repeated starts from what it started from the first time, whatever came after it, so that it is found in the
    cache.

    Args:
        workspace: The home.
        base: Key of corpus, settings and code: what is equal in a repeated night.
        corpus: Tonight's.
    """
    found = _newest_first(workspace, Checkpoint)
    for key, details in found:
        if details.get("base") == base:
            recorded = details["ancestor"]
            if recorded is None:
                return None
            if (workspace.home / recorded["path"] / "artifact.json").exists() or workspace.read(Checkpoint, key) is not None:
                return Checkpoint(path=recorded["path"], digest=recorded["digest"])
    lineage = workspace.details(corpus)["lineage"]
    scored = {details.get("checkpoint") for _, details in _newest_first(workspace, Scores)}
    for key, details in found:
        if details.get("lineage") == lineage and details.get("corpus") != corpus.digest:
            artifact = workspace.read(Checkpoint, key)
            if artifact is not None and artifact.digest in scored:
                return artifact
    return None


def _newest_first(workspace: Workspace, kind: type[Checkpoint] | type[Scores]) -> list[tuple[str, dict[str, Any]]]:
    """Key and details of every published artifact of that kind."""
    files = [file for file in workspace.place(kind, "any").parent.glob("*/artifact.json") if file.parent.suffix != ".tmp"]
    return [(file.parent.name, _details(file)) for file in sorted(files, key=lambda file: file.stat().st_mtime_ns, reverse=True)]


def _details(file: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(file.read_text())["details"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}
