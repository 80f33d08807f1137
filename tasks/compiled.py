"""Loops compiled by numba, for work that is large enough to earn its import back (.4 s of processor time).

Compiling takes a second or two, once a machine: the machine code is kept beside the source, or in the user's cache
directory where the source may not be written. With neither it is compiled in each process. Where numba is not installed
the caller's numpy form does the work; both give the same bits, so that a result does not depend on the machine.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from typing import Any


@functools.cache
def available() -> bool:
    """Whether numba is installed; importing it is left to the first use."""
    return importlib.util.find_spec("numba") is not None


@functools.cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as machine code that lets other threads run meanwhile; the same object for the same function."""
    import numba

    try:
        return numba.njit(function, cache=True, nogil=True)
    except RuntimeError:  # numba found no directory to write to
        return numba.njit(function, nogil=True)
