"""Compilation of loops by numba, which is imported at the first use."""

import functools
from collections.abc import Callable
from typing import Any

from storage.installed import is_installed


@functools.cache
def available() -> bool:
    """Returns whether numba is installed, without importing it."""
    return is_installed("numba")


@functools.cache
def compiled(function: Callable[..., Any], fastmath: bool = False) -> Callable[..., Any]:
    """Compiles a function to machine code that releases the interpreter lock; cached per function.

    Args:
        function: Function of arrays and numbers; it may call other compiled functions.
        fastmath: Allows sums to be reordered and thus vectorized; NaN keeps its meaning.

    Returns:
        The compiled function, or the function itself, 100 times as slow, if numba is not installed.
    """
    if not available():
        return function
    import numba  # takes .4 s

    options: dict[str, Any] = {
        "nogil": True,
        "fastmath": {"reassoc", "contract", "nsz"} if fastmath else False,
    }
    try:
        compiled_function: Any = numba.njit(function, cache=True, **options)
    except RuntimeError:  # numba has no writable cache folder
        return numba.njit(function, **options)
    _discard_unreadable_index(compiled_function._cache._cache_file)
    return compiled_function


def _discard_unreadable_index(cache_file: Any) -> None:
    """Empties numba's index of a function's compiled versions if an earlier version of our code wrote it.

    The index contains the argument types by name. If one of them was renamed since, numba raises an
    AttributeError or ImportError before it compares the age of the index with that of the source file.
    """
    try:
        cache_file._load_index()
    except (AttributeError, ImportError):
        cache_file.flush()
