"""Where the model that serves is."""

from pathlib import Path

from storage.tracking import Registry
from storage.workspace import HomeError, Workspace


def champion_folder(home: str) -> Path:
    """Folder of the champion.

    Raises:
        HomeError: No model serves yet.
    """
    champion = Registry(Workspace(home, create=False).home).champion()
    if champion is None:
        raise HomeError(f"{home} has no champion model yet; run `guidespace nightly --feed …` first")
    return champion.folder
