"""Removes artifacts that have not been used recently, and downloaded models that are no longer served.

A folder is renamed to ``*.tmp`` before its files are removed. If the process is killed, the next process that
locks the home for writing removes the remaining files.
"""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from storage.atomic import remove_folder
from storage.home.files import folder_size, last_used
from storage.home.workspace import Workspace


@dataclass(frozen=True, kw_only=True)
class RemovalResult:
    """Items that a clean-up has removed, or would remove in a dry run."""

    what: str  # kind of data, such as "artifacts"
    count: int = 0  # number of removed items
    bytes: int = 0  # size of the removed items; 0 if unknown


def old_artifacts(workspace: Workspace, keep: int, pinned: Collection[Path] = ()) -> list[Path]:
    """Returns the folders of artifacts that were not used recently and can be removed.

    The folder of an interrupted training (``*.partial``) is returned if it was last used before all artifacts
    that are kept.

    Args:
        workspace: The home.
        keep: Number of the most recently used artifacts of each kind that must be kept.
        pinned: Further folders that must be kept.

    Raises:
        ValueError: ``keep`` is less than 1.
    """
    if keep < 1:
        raise ValueError(f"keep must be at least 1, got {keep}, because the last run needs its artifacts")
    removable = []
    for kind in sorted((workspace.home / "artifacts").glob("*/")):
        published_folders = [
            file.parent for file in kind.glob("*/artifact.json") if file.parent.suffix != ".tmp"
        ]
        published_folders.sort(key=last_used, reverse=True)
        removable += [folder for folder in published_folders[keep:] if folder not in pinned]
        oldest_kept_use = last_used(published_folders[keep - 1]) if len(published_folders) >= keep else 0
        removable += [
            partial for partial in kind.glob("*.partial") if partial.stat().st_mtime_ns < oldest_kept_use
        ]
    return removable


def prune_artifacts(
    workspace: Workspace, keep: int, pinned: Collection[Path] = (), *, dry_run: bool = False
) -> RemovalResult:
    """Removes the artifacts that ``old_artifacts`` returns. The caller must hold the lock of the home.

    Models in the MLflow registry are not affected. If ``dry_run`` is set, the artifacts are only counted.
    """
    return _remove_folders("artifacts", old_artifacts(workspace, keep, pinned), dry_run)


def prune_downloaded_models(workspace: Workspace, champion: Path, *, dry_run: bool = False) -> RemovalResult:
    """Removes all downloaded models except the one that contains the folder ``champion``.

    If ``dry_run`` is set, the models are only counted.
    """
    folders = list((workspace.home / "champions").glob(f"{'[0-9a-f]' * 16}*"))
    return _remove_folders(
        "fetched champions", [folder for folder in folders if folder not in champion.parents], dry_run
    )


def _remove_folders(what: str, folders: Collection[Path], dry_run: bool) -> RemovalResult:
    """Removes folders, whose kind of data is ``what``, unless ``dry_run`` is set; returns number and size."""
    result = RemovalResult(what=what, count=len(folders), bytes=sum(map(folder_size, folders)))
    if not dry_run:
        for folder in folders:
            remove_folder(folder)
    return result
