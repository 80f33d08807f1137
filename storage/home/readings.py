"""Reads and writes ``readings.json``: the result of each feed in the last import, for checks and reports."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from storage.json_file import write_json

READINGS_FILE = "readings.json"
KEY_BY_FIELD = {"failure": "failed"}  # key in the file of a field of FeedStatus, if it has another name


@dataclass(frozen=True, kw_only=True)
class FeedStatus:
    """The result of importing one feed."""

    source: str  # name of the feed
    programmes: int | None = None  # number of readable programmes; None if the import failed
    anomalies: Sequence[str] = ()  # warnings about the content
    failure: str = ""  # reason why nothing was stored; "" if the import succeeded


def write_readings(home: Path, readings: Sequence[FeedStatus]) -> None:
    """Writes the results of the last import of feeds to readings.json atomically."""
    documents = [
        {KEY_BY_FIELD.get(field, field): value for field, value in asdict(reading).items()}
        for reading in readings
    ]
    write_json(home / READINGS_FILE, documents)


def read_readings(home: Path) -> list[FeedStatus]:
    """Reads the results of the last import of feeds, in the order of import; [] if there was no import."""
    try:
        documents = json.loads((home / READINGS_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    return [FeedStatus(failure=document.pop("failed", ""), **document) for document in documents]
