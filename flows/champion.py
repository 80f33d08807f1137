"""Where the model that serves is."""

from pathlib import Path

from storage.home.workspace import HomeError, Workspace
from storage.tracking import Registry


def champion_folder(home: str, model: str | None = None) -> Path:
    """Folder of the champion; of the registered ``model`` of another home, fetched into this one, if given.

    Raises:
        HomeError: No model serves yet.
    """
    registry = Registry(reading_home(home, model), name=model)
    if (champion := registry.champion()) is None:
        whose = f"{model} in {registry.shell_uri}" if model else home
        raise HomeError(f"{whose} has no champion model yet; run `guidespace nightly --feed …` first")
    return champion.folder


def reading_home(home: str, model: str | None) -> Path:
    """The home's folder; made where there is none if it only keeps what is fetched of another's ``model``.

    Raises:
        HomeError: It is not there, or is no home.
    """
    return Workspace(home, create=model is not None).home
