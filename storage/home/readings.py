"""``readings.json``: the results of the home's last command that read feeds, for checks and report."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from storage.json_file import write_json

READINGS = "readings.json"


@dataclass(frozen=True, kw_only=True)
class FeedStatus:
    """The result of reading one feed."""

    source: str
    programmes: int | None = None  # usable ones; None where it failed
    anomalies: Sequence[str] = ()
    failed: str = ""  # why nothing was stored


def write_readings(home: Path, readings: Sequence[FeedStatus]) -> None:
    """Replaces the file."""
    write_json(home / READINGS, [asdict(status) for status in readings])


def read_readings(home: Path) -> list[FeedStatus]:
    """In the order of reading; empty where nothing was read."""
    try:
        return [FeedStatus(**status) for status in json.loads((home / READINGS).read_text(encoding="utf-8"))]
    except FileNotFoundError:
        return []
