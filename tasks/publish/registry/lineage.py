"""Whether a champion may be compared with tonight's model: was it made of tonight's feeds and splits?

A guide that has gained feeds is compared. One that lacks feeds of the champion's is another guide: a model
that knows less would be judged on what it knows. With another salt other titles were held out, and the
champion has trained on those that tonight's model is judged by.
"""

import hashlib
from collections.abc import Collection, Sequence
from pathlib import Path

import pyarrow.parquet as pq

from storage.artifacts import Corpus, Guide
from storage.home.workspace import Workspace
from storage.tracking import Champion, ModelVersion, Registry, TrackingError


def fingerprints(salt: str, sources: Sequence[str]) -> list[str]:
    """Eight hexadecimal digits a feed, of its name without the folder and of the salt; in order."""
    names = {Path(source).name for source in sources}
    return sorted(hashlib.sha256(f"{salt}\n{name}".encode()).hexdigest()[:8] for name in names)


def other_lineage(
    own_line: str, own: Collection[str], champions_line: str, champions: Collection[str]
) -> str:
    """Why the champion is of a lineage that cannot be compared; empty where it can, or where it is not known.

    Args:
        own_line: Lineage of tonight's model.
        own: Fingerprints of its feeds.
        champions_line: Lineage of the champion.
        champions: Fingerprints of its feeds; none of one that an older version made.
    """
    lacking = len(set(champions) - set(own))
    if own_line == champions_line or not lacking:
        return ""
    feeds = f"{len(champions)} feed{'s' if len(champions) != 1 else ''} that the champion was made of"
    why = f"tonight's guide lacks {lacking} of the {feeds}"
    return f"{why}, or tokenize.splits.salt has changed" if lacking == len(champions) else why


def salt_and_sources(workspace: Workspace, guide: Guide, corpus: Corpus) -> tuple[str, list[str]]:
    """The salt of the splits, and the names of the feeds: what a lineage is made of."""
    feeds = pq.read_table(workspace.folder(guide) / "feeds.parquet", columns=["source"])
    return str(workspace.details(corpus)["salt"]), feeds["source"].to_pylist()


def champion_of(registry: Registry, past: Sequence[ModelVersion]) -> tuple[Champion | None, str]:
    """The champion, or None and why there is none; no reason where none ever was."""
    try:
        champion = registry.champion()
    except TrackingError as error:
        return None, str(error)
    if champion is None and past:
        before = f"version {past[0].version} had it before"
        return None, f"no version of {registry.name} has the alias champion, and {before}"
    return champion, ""
