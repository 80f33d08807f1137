"""``readings.json``: the result of each feed in the last command that read feeds, for checks and reports."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from storage.json_file import write_json

READINGS = "readings.json"
KEYS = {"failure": "failed"}  # names of fields in the file that differ from those in FeedStatus


@dataclass(frozen=True, kw_only=True)
class FeedStatus:
    """The result of reading one feed."""

    source: str
    programmes: int | None = None  # usable ones; None if reading failed
    anomalies: Sequence[str] = ()
    failure: str = ""  # reason why nothing was stored


def write_readings(home: Path, readings: Sequence[FeedStatus]) -> None:
    """Replaces readings.json."""
    documents = [{KEYS.get(name, name): value for name, value in asdict(item).items()} for item in readings]
    write_json(home / READINGS, documents)


def read_readings(home: Path) -> list[FeedStatus]:
    """Reads the results in the order of reading; empty if nothing has been read."""
    try:
        documents = json.loads((home / READINGS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    return [FeedStatus(failure=item.pop("failed", ""), **item) for item in documents]
