"""Provides a memory fence, which orders reads and writes between processes that share memory.

A processor may reorder plain reads and writes (ARM does; x86-64 moves only reads before earlier writes). A
process that publishes data by a flag calls ``fence`` between the writes of data and flag, and a process that
polls the flag calls it between the reads of flag and data. A lock would order them too, but a learner that is
killed while it holds the lock would block all others.
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
    """Completes all earlier reads and writes of this process before all later ones; needs numba."""
    _full_fence()()
