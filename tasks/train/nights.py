"""Which night's checkpoint tonight's training starts from: the newest scored one of another Corpus and of its lineage (design rule 6).

A Checkpoint's details say: ``corpus`` (digest of what it was trained on), ``lineage`` (tasks/tokenize/growth.py), ``ancestor`` (path and
digest of the checkpoint that it was given to start from, or None) and ``started`` (how it started, in words). Scores repeat the digest of
the checkpoint that they are of.
"""

from __future__ import annotations

from typing import Any

from storage.artifacts import Checkpoint, Corpus, Scores
from storage.workspace import Workspace
from storage.yesterday import newest_ancestor, newest_details


def find_checkpoint(workspace: Workspace, base: str, corpus: Corpus) -> Checkpoint | None:
    """What tonight's training starts from; None where there is nothing.

    A night that is repeated starts from what it started from the first time, whatever came after it, so that it is found in the
    cache.

    Args:
        workspace: The home.
        base: Key of corpus, settings and code: what is equal in a repeated night.
        corpus: Tonight's.
    """

    def suits(details: dict[str, Any]) -> bool:
        return details.get("lineage") == workspace.details(corpus)["lineage"] and details.get("corpus") != corpus.digest

    def is_scored(checkpoint: Checkpoint) -> bool:
        return checkpoint.digest in {details.get("checkpoint") for _, details in newest_details(workspace, Scores)}

    return newest_ancestor(workspace, Checkpoint, base, suits, is_scored)
