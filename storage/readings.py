"""What the last command that read feeds came to: ``readings.json`` in the home, for the checks and the report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from storage.json_file import write_json

FILE = "readings.json"


@dataclass(frozen=True, kw_only=True)
class Told:
    """What became of one feed.

    Attributes:
        source: The feed.
        programmes: That could be read of it; None where it failed.
        anomalies: What is odd, in words.
        failed: Why nothing was stored; empty where it was read.
    """

    source: str
    programmes: int | None = None
    anomalies: Sequence[str] = ()
    failed: str = ""


def write_readings(home: Path, readings: Sequence[Told]) -> None:
    """Replaces what the command before had left."""
    write_json(home / FILE, [asdict(told) for told in readings])


def read_readings(home: Path) -> list[Told]:
    """In the order of reading; empty where nothing was read."""
    try:
        return [Told(**told) for told in json.loads((home / FILE).read_text(encoding="utf-8"))]
    except FileNotFoundError:
        return []
