"""Loops as machine code, by numba, imported at the first use."""

import functools
import importlib.util
from collections.abc import Callable
from typing import Any


@functools.cache
def available() -> bool:
    """Whether numba is installed; importing it is left to the first use."""
    try:
        return importlib.util.find_spec("numba") is not None
    except ModuleNotFoundError:  # an import hook refuses it
        return False


@functools.cache
def compiled(function: Callable[..., Any], fastmath: bool = False) -> Callable[..., Any]:
    """The function as machine code that releases the interpreter; cached by function. Where numba is not
    installed it is the function itself, a hundred times as slow.

    Args:
        function: Of arrays and numbers; it may call others that are compiled already.
        fastmath: Sums may be reordered, so that they run on vectors; NaN is still told apart.
    """
    if not available():
        return function
    import numba  # takes .4 s

    options: dict[str, Any] = {
        "nogil": True,
        "fastmath": {"reassoc", "contract", "nsz"} if fastmath else False,
    }
    try:
        return numba.njit(function, cache=True, **options)
    except RuntimeError:  # numba found no directory to write to
        return numba.njit(function, **options)
