"""Old artifacts leave the home: of each kind the newest few stay, so that a year of nights does not fill the disk.

"New" is when a folder was last published or found good again: what an unchanged night reused counts as of that night.
The models that serve or served are MLflow's own copies and stay there.
"""

from __future__ import annotations

import shutil

from storage.workspace import Workspace


def prune(workspace: Workspace, keep: int) -> int:
    """Removes all but the newest folders of each kind, and the notes beside folders that are gone.

    Args:
        workspace: A home that this process is writing to.
        keep: Folders that stay, of each kind; at least one.

    Returns:
        How many were removed.

    Raises:
        ValueError: ``keep`` is less than one: the last night's own artifacts would go.
    """
    if keep < 1:
        raise ValueError(f"keep is {keep}; one folder of each kind must stay, or the last run loses its own")
    removed = 0
    for kind in (workspace.home / "artifacts").glob("*/"):
        complete = [folder for folder in kind.iterdir() if (folder / "artifact.json").is_file()]
        complete.sort(key=lambda folder: (folder / "artifact.json").stat().st_mtime_ns, reverse=True)
        for folder in complete[keep:]:
            shutil.rmtree(folder)
            removed += 1
        for note in kind.glob("*.nonce"):
            if not note.with_suffix("").exists():
                note.unlink()
    return removed
