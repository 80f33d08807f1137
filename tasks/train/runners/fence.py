"""Provides a memory fence, which orders the reads and writes of processes that share memory.

A processor may reorder reads and writes (ARM does; x86-64 only moves reads before earlier writes). To publish
data, a process writes the data, calls ``fence``, and sets a flag. Another process reads the flag, calls
``fence``, and reads the data. A lock would have the same effect, but a learner that is killed while it holds
the lock would block all others.
"""

import functools
from collections.abc import Callable
from typing import no_type_check

from tasks.compiled import compiled


@no_type_check
@functools.cache
def _full_fence() -> Callable[[], None]:
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def full_fence(typing_context):
        def generate(context, builder, signature, arguments):
            builder.fence("seq_cst")
            return context.get_dummy_value()

        return types.void(), generate

    def fence() -> None:
        full_fence()  # pyright: ignore[reportCallIssue]

    return compiled(fence)


def fence() -> None:
    """Completes all earlier reads and writes of this process before any later ones start. Needs numba."""
    _full_fence()()
