"""The folder of the champion model."""

from pathlib import Path

from storage.home.workspace import HomeError, Workspace
from storage.tracking import Registry


def champion_folder(home: str, model: str | None = None) -> Path:
    """Returns the folder of the champion.

    Args:
        home: Folder of the home.
        model: Registered model of another home, which is downloaded into this home; None: this home's model.

    Raises:
        HomeError: There is no champion yet.
    """
    registry = Registry(reading_home(home, model), name=model)
    if (champion := registry.champion()) is None:
        name = f"{model} in {registry.shell_uri}" if model else home
        raise HomeError(f"{name} has no champion model yet; run `guidespace nightly --feed …` first")
    return champion.folder


def reading_home(home: str, model: str | None) -> Path:
    """Returns the folder of the home; creates it if ``model`` of another home is to be downloaded into it.

    Raises:
        HomeError: The folder does not exist or is not a home.
    """
    return Workspace(home, create=model is not None).home
