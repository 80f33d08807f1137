"""Compiles loops with numba, which is imported at the first use."""

import functools
from collections.abc import Callable
from typing import Any

from storage.installed import is_installed


@functools.cache
def has_numba() -> bool:
    """Returns whether numba is installed, without importing it."""
    return is_installed("numba")


@functools.cache
def compiled(function: Callable[..., Any], fastmath: bool = False) -> Callable[..., Any]:
    """Compiles a function to machine code that releases the interpreter lock. Results are cached.

    Args:
        function: Function of arrays and numbers; it may call other compiled functions.
        fastmath: Whether the compiler may reorder sums to vectorize them. NaN is computed correctly.

    Returns:
        The compiled function. If numba is not installed, ``function`` itself, which is 100 times as slow.
    """
    if not has_numba():
        return function
    import numba  # the import takes .4 s

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
    """Empties numba's index of the compiled versions of a function if numba cannot read the index.

    The index refers to the types of arguments by name. If our code has renamed a type since, numba raises an
    AttributeError or ImportError before it compares the age of the index with that of the source file.
    """
    try:
        cache_file._load_index()
    except (AttributeError, ImportError):
        cache_file.flush()
