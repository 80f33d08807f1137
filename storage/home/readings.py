"""``readings.json``: results of the last command that read feeds, for checks and the report."""

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
    programmes: int | None = None  # usable ones; None if reading failed
    anomalies: Sequence[str] = ()
    failed: str = ""  # reason if nothing was stored


def write_readings(home: Path, readings: Sequence[FeedStatus]) -> None:
    """Replaces the file."""
    write_json(home / READINGS, [asdict(status) for status in readings])


def read_readings(home: Path) -> list[FeedStatus]:
    """Reads the results in the order of reading; empty if nothing has been read."""
    try:
        return [FeedStatus(**status) for status in json.loads((home / READINGS).read_text(encoding="utf-8"))]
    except FileNotFoundError:
        return []
