"""A full disk, told as the system tells it: whoever catches it need not know DuckDB."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb


@contextmanager
def full_disk_told(file: Path) -> Iterator[None]:
    """Raises an OSError (ENOSPC) in place of DuckDB's errors.

    It has several kinds for this, and the last one raised may only say that another one was fatal.
    """
    try:
        yield
    except duckdb.Error as error:
        told: BaseException | None = error
        while told is not None:
            if os.strerror(errno.ENOSPC) in str(told):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file)) from error
            told = told.__context__
        raise
