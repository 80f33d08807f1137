"""Paths in SQL."""

from __future__ import annotations

import re
from pathlib import Path


def parquet(path: Path) -> str:
    """A file as ``read_parquet`` takes it: ``*``, ``?`` and ``[`` stand for themselves, not for a pattern."""
    return re.sub(r"[*?\[]", r"[\g<0>]", str(path))


def quoted(text: str) -> str:
    """The inside of a literal of SQL."""
    return text.replace("'", "''")
