"""Which packages are installed; a light installation lacks those of the extra ``night``."""

import importlib.util


def is_installed(package: str) -> bool:
    """Returns whether a package can be imported, without importing it."""
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # raised by an import hook
        return False
