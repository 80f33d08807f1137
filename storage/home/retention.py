"""What may be removed from a home's folders: published artifacts that nobody used lately, and champions that
were fetched from a server and serve no more.

A folder is renamed to ``*.tmp`` before it is removed: a killed process leaves a name that counts as
unfinished, which the home's next writer removes.
"""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from storage.atomic import remove_folder
from storage.home.workspace import Workspace, folder_size, last_used


@dataclass(frozen=True, kw_only=True)
class Removed:
    """What a clean-up removed, or would remove."""

    what: str
    count: int = 0
    bytes: int = 0  # as far as they are known


def old_artifacts(workspace: Workspace, keep: int, kept: Collection[Path] = ()) -> list[Path]:
    """Folders of artifacts but the ``keep`` last used of each kind; those in ``kept`` stay, too. Half a
    training (``*.partial``), whose feeds or settings no later night had, goes as if it were whole.

    Raises:
        ValueError: ``keep`` is less than 1.
    """
    if keep < 1:
        raise ValueError(f"keep is {keep}; one folder of each kind must stay, or the last run loses its own")
    found = []
    for kind in sorted((workspace.home / "artifacts").glob("*/")):
        complete = [file.parent for file in kind.glob("*/artifact.json") if file.parent.suffix != ".tmp"]
        complete.sort(key=last_used, reverse=True)
        found += [folder for folder in complete[keep:] if folder not in kept]
        oldest = last_used(complete[keep - 1]) if len(complete) >= keep else 0
        found += [half for half in kind.glob("*.partial") if half.stat().st_mtime_ns < oldest]
    return found


def prune(workspace: Workspace, keep: int, kept: Collection[Path] = (), *, dry_run: bool = False) -> Removed:
    """Removes ``old_artifacts``; for the home's writer.

    Registered models are MLflow's own copies and stay.
    """
    return _remove("artifacts", old_artifacts(workspace, keep, kept), dry_run)


def prune_fetched(workspace: Workspace, digest: str, *, dry_run: bool = False) -> Removed:
    """Removes copies of champions from a server other than that of ``digest``; a rollback fetches its own."""
    folders = list((workspace.home / "champions").glob(f"{'[0-9a-f]' * 16}*"))
    return _remove("fetched champions", [one for one in folders if one.name != digest[:16]], dry_run)


def _remove(what: str, folders: Collection[Path], dry_run: bool) -> Removed:
    removed = Removed(what=what, count=len(folders), bytes=sum(map(folder_size, folders)))
    if not dry_run:
        for folder in folders:
            remove_folder(folder)
    return removed
