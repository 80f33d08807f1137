"""Reads and writes ``readings.json``: the result of each feed in the last import, for checks and reports."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from storage.json_file import read_json_if_exists, write_json

READINGS_FILE = "readings.json"


@dataclass(frozen=True, kw_only=True)
class FeedStatus:
    """The result of importing one feed."""

    source: str  # name of the feed
    programmes: int | None = None  # number of readable programmes; None if the import failed
    anomalies: Sequence[str] = ()  # warnings about the content
    failed: str = ""  # reason why nothing was stored; "" if the import succeeded


def write_readings(home: Path, readings: Sequence[FeedStatus]) -> None:
    """Writes the results of the last import of feeds to readings.json atomically."""
    write_json(home / READINGS_FILE, [asdict(reading) for reading in readings])


def read_readings(home: Path) -> list[FeedStatus]:
    """Reads the results of the last import of feeds, in the order of import; [] if there was no import."""
    return [FeedStatus(**document) for document in read_json_if_exists(home / READINGS_FILE) or []]
