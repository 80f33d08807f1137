"""Decides whether tonight's model can be compared with the champion (the served model).

Two models cannot be compared in these cases:

- The salt of the split has changed. The salt is a setting that determines, by a hash, which titles are held
  out. With another salt, the champion was trained on some of tonight's held-out titles.
- Tonight's guide lacks a feed from which the champion was trained. The held-out titles would then cover only
  some of the champion's titles. Additional feeds do not prevent a comparison.
"""

import hashlib
from collections.abc import Collection, Sequence
from pathlib import Path

import pyarrow.parquet as pq

from storage.artifacts import Corpus, Guide
from storage.home.workspace import Workspace
from storage.tracking import Champion, ModelVersion, Registry, TrackingError


def lineage_id(salt: str, sources: Sequence[str]) -> str:
    """Returns the id of the lineage of a model: the hash of its split salt and the names of its feeds.

    The qualities of models with the same lineage are comparable.
    """
    return hashlib.sha256("\n".join([salt, *sorted(set(sources))]).encode()).hexdigest()[:16]


def feed_fingerprints(salt: str, sources: Sequence[str]) -> list[str]:
    """Returns a hash of the salt and the file name of each feed, as eight hexadecimal digits, sorted."""
    names = {Path(source).name for source in sources}
    return sorted(hashlib.sha256(f"{salt}\n{name}".encode()).hexdigest()[:8] for name in names)


def lineage_mismatch(
    lineage: str, feeds: Collection[str], champion_lineage: str, champion_feeds: Collection[str]
) -> str:
    """Returns the reason why two models cannot be compared, or "" if they can.

    Args:
        lineage: Lineage id of tonight's model (``lineage_id``).
        feeds: Fingerprints of the feeds of tonight's model (``feed_fingerprints``).
        champion_lineage: Lineage id of the champion.
        champion_feeds: Fingerprints of the champion's feeds; empty for models registered without them.
    """
    missing_count = len(set(champion_feeds) - set(feeds))
    if lineage == champion_lineage or not missing_count:
        return ""
    reason = (
        f"tonight's guide lacks {missing_count} of the {len(champion_feeds)} "
        f"feed{'s' if len(champion_feeds) != 1 else ''} of the champion"
    )
    lacks_all = missing_count == len(champion_feeds)
    return f"{reason}, or tokenize.splits.salt has changed" if lacks_all else reason


def salt_and_sources(workspace: Workspace, guide: Guide, corpus: Corpus) -> tuple[str, list[str]]:
    """Returns the salt of the split of a Corpus, and the names of the feeds of a Guide."""
    feeds = pq.read_table(workspace.folder(guide) / "feeds.parquet", columns=["source"])
    return str(workspace.details(corpus)["salt"]), feeds["source"].to_pylist()


def champion_or_reason(
    registry: Registry, past_champions: Sequence[ModelVersion]
) -> tuple[Champion | None, str]:
    """Returns the champion, or the reason why there is no champion to compare with.

    Args:
        registry: Registry of the models of the home.
        past_champions: Versions that were promoted before, newest first.

    Returns:
        The champion and "", or None and the reason. The reason is "" if no version was promoted before.
    """
    try:
        champion = registry.champion()
    except TrackingError as error:
        return None, str(error)
    if champion is None and past_champions:
        version = past_champions[0].version
        return None, f"the alias champion of {registry.name}, last on version {version}, was removed"
    return champion, ""
