"""Finds the model that a command uses: the champion of the home, or the model that ``--model`` names.

The champion is the registered model that is served.
"""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from storage.formats.model_file import ModelFileError, ModelIdentity, write_model_file
from storage.home.marker import is_home
from storage.home.workspace import HomeError, Workspace
from storage.tracking import Champion, Registry

if TYPE_CHECKING:
    from flows.followed_model import FollowedModel


def print_warning(problem: str) -> None:
    """Prints a problem as a line on standard error."""
    print(f"guidespace: {problem}", file=sys.stderr)


def open_models(
    home: str | Path, model: str | None = None, warn: Callable[[str], object] = print_warning
) -> "Registry | FollowedModel":
    """Opens the model registry of a home, or the model that ``model`` names.

    The method ``champion`` of the result returns the model. If ``model`` is set and the home does not exist,
    the home is created after the model has been read, because the home stores a copy of the model.

    Args:
        home: Folder of the home.
        model: URL, path of a model file, ``env:NAME``, or name of a registered model of another home; None:
            the registry of this home.
        warn: Called with a message whenever the location of the model cannot be read, so that a stored copy
            is used.

    Raises:
        HomeError: The folder does not exist or is not a home, or MLflow's server has no such model.
        ModelFileError: The model file is missing, or the URL is invalid.
    """
    folder = Path(home).expanduser().resolve()
    if model and (
        model.startswith("env:") or "/" in model or model.endswith(".zip") or os.path.exists(model)
    ):
        from flows.followed_model import FollowedModel

        return FollowedModel(folder, model, warn)
    registry = Registry(folder, name=model)
    is_new_home = bool(model) and not registry.mlflow.uses_home_database and not is_home(folder)
    if is_new_home:
        require_champion(registry)
    Workspace(folder, create=is_new_home)
    return registry


def require_champion(models: "Registry | FollowedModel") -> Champion:
    """Returns the champion of a registry or followed model. Raises HomeError if there is no champion yet."""
    if (champion := models.champion()) is None:
        problem = f"{models.home} has no champion model yet ({models.name})"
        remedy = "name a model file that exists, or a URL, by --model"
        raise HomeError(f"{problem}; run `guidespace nightly --feed …` first, or {remedy}")
    return champion


def find_champion(
    home: str | Path, model: str | None = None, warn: Callable[[str], object] = print_warning
) -> Champion:
    """Returns the champion of a home, or the model that ``model`` names (see ``open_models``).

    Raises:
        HomeError: There is no champion yet.
    """
    return require_champion(open_models(home, model, warn))


def export_model(home: str, out: Path) -> Iterator[str]:
    """Writes the champion to a model file, and yields a line with the version and the size of the file.

    Raises:
        HomeError: There is no champion yet.
        ModelFileError: The file cannot be written.
    """
    champion = find_champion(home)
    try:
        write_model_file(
            champion.folder, ModelIdentity(version=champion.version, digest=champion.digest), out
        )
    except OSError as error:
        raise ModelFileError(f"{out} cannot be written: {error.strerror}; name another file") from error
    yield f"{out}: version {champion.version}, {out.stat().st_size / 1e6:,.1f} MB; use it with --model {out}"
