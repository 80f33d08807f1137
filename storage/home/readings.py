"""Reads and writes ``readings.json``: the result of each feed in the last import, for checks and reports."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from storage.json_file import write_json

READINGS = "readings.json"
KEYS = {"failure": "failed"}  # field of FeedStatus -> key in the file, if they differ


@dataclass(frozen=True, kw_only=True)
class FeedStatus:
    """The result of importing one feed."""

    source: str  # name of the feed
    programmes: int | None = None  # number of readable programmes; None if the import failed
    anomalies: Sequence[str] = ()  # warnings about the content
    failure: str = ""  # reason why nothing was stored; "" if the import succeeded


def write_readings(home: Path, readings: Sequence[FeedStatus]) -> None:
    """Writes the results of the last import of feeds to readings.json atomically."""
    documents = [{KEYS.get(name, name): value for name, value in asdict(item).items()} for item in readings]
    write_json(home / READINGS, documents)


def read_readings(home: Path) -> list[FeedStatus]:
    """Reads the results of the last import of feeds, in the order of import; [] if there was no import."""
    try:
        documents = json.loads((home / READINGS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    return [FeedStatus(failure=item.pop("failed", ""), **item) for item in documents]
