"""Decides from feeds and split salt whether the champion can be compared with tonight's model.

If the salt of the splits has changed, the models cannot be compared, because other titles are held out and
the champion was trained on some of tonight's queries. If tonight's guide lacks a feed of the champion, they
cannot be compared either, because the queries would cover only a part of the champion's titles. Additional
feeds do not prevent a comparison.
"""

import hashlib
from collections.abc import Collection, Sequence
from pathlib import Path

import pyarrow.parquet as pq

from storage.artifacts import Corpus, Guide
from storage.home.workspace import Workspace
from storage.tracking import Champion, ModelVersion, Registry, TrackingError


def lineage_id(salt: str, sources: Sequence[str]) -> str:
    """Returns the id of the lineage: models with the same salt and feeds, whose qualities are comparable."""
    return hashlib.sha256("\n".join([salt, *sorted(set(sources))]).encode()).hexdigest()[:16]


def feed_fingerprints(salt: str, sources: Sequence[str]) -> list[str]:
    """Hashes the file name of each feed, with the salt, to eight hexadecimal digits; sorted."""
    names = {Path(source).name for source in sources}
    return sorted(hashlib.sha256(f"{salt}\n{name}".encode()).hexdigest()[:8] for name in names)


def lineage_mismatch(
    lineage: str, feeds: Collection[str], champion_lineage: str, champion_feeds: Collection[str]
) -> str:
    """Returns the reason why the lineages cannot be compared, or "" if they can.

    Args:
        lineage: Lineage of tonight's model.
        feeds: Fingerprints of its feeds.
        champion_lineage: Lineage of the champion.
        champion_feeds: Fingerprints of the champion's feeds; empty for models of older versions.
    """
    missing = len(set(champion_feeds) - set(feeds))
    if lineage == champion_lineage or not missing:
        return ""
    count = f"{len(champion_feeds)} feed{'s' if len(champion_feeds) != 1 else ''}"
    reason = f"tonight's guide lacks {missing} of the {count} of the champion"
    return f"{reason}, or tokenize.splits.salt has changed" if missing == len(champion_feeds) else reason


def salt_and_sources(workspace: Workspace, guide: Guide, corpus: Corpus) -> tuple[str, list[str]]:
    """Returns the salt of the splits and the names of the feeds."""
    feeds = pq.read_table(workspace.folder(guide) / "feeds.parquet", columns=["source"])
    return str(workspace.details(corpus)["salt"]), feeds["source"].to_pylist()


def champion_or_reason(registry: Registry, past: Sequence[ModelVersion]) -> tuple[Champion | None, str]:
    """Returns the champion and "", or None and the reason: "" if no version was promoted before.

    ``past`` are the versions promoted before.
    """
    try:
        champion = registry.champion()
    except TrackingError as error:
        return None, str(error)
    if champion is None and past:
        return None, f"the alias champion of {registry.name}, last on version {past[0].version}, was removed"
    return champion, ""
