"""Tests whether a package is installed. Installations without the extra ``night`` lack some packages."""

import importlib.util


def is_installed(package: str) -> bool:
    """Returns whether a package can be imported, without importing it."""
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # raised by an import hook
        return False
