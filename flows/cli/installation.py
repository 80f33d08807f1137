"""Rejects commands whose packages a light installation lacks, with a message that names the packages.

`pip install guidespace` installs the packages of commands that only read. The extra ``night`` adds the
packages that runs need (pyproject.toml).
"""

import functools
from collections.abc import Callable
from typing import Any

from storage.errors import ExpectedError
from storage.installed import is_installed

# import names
NIGHT_PACKAGES = ("prefect", "torch", "mlflow", "sqlalchemy", "scipy", "sklearn", "numba", "plotly")
REMEDY = "pip install 'guidespace[night]'"


class NightMissing(ExpectedError, ImportError):
    """Error: a command needs packages of the extra ``night``. The message names the missing packages."""


def require_night_packages(command: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a command so that it raises NightMissing, before it starts, if packages are missing."""

    @functools.wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        require_night(command.__name__)
        return command(*args, **kwargs)

    return wrapper


def require_night(command: str) -> None:
    """Raises NightMissing if packages of the extra ``night`` are missing."""
    if missing_packages := [package for package in NIGHT_PACKAGES if not is_installed(package)]:
        raise NightMissing(_missing_message(command, missing_packages))


def explain_missing(command: str, error: BaseException) -> NightMissing | None:
    """Returns a NightMissing for the ImportError of a package of ``night``, or None for another error."""
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return NightMissing(_missing_message(command, [package])) if package in NIGHT_PACKAGES else None


def _missing_message(command: str, packages: list[str]) -> str:
    package_text = f"package{'s' * (len(packages) > 1)} {', '.join(packages)}"
    return f"`guidespace {command}` needs the {package_text}, which a light installation lacks. Run {REMEDY}"
