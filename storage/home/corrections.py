"""``corrections.json``: categories of shows that a person has corrected, for the commands that predict.

The catalogue has the same corrections (storage/catalogue/corrections.py), but is locked during ingest.
"""

import datetime
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from storage.json_file import write_json

CORRECTIONS = "corrections.json"


@dataclass(frozen=True, kw_only=True)
class Correction:
    """A person's correction of the categories of a show."""

    show_key: str
    title: str  # as in the model, or as entered by the person
    categories: tuple[str, ...]  # labels that the champion had at that time
    corrected_at: datetime.datetime  # UTC, timezone-aware

    def __str__(self) -> str:
        source = corrected_on(self.corrected_at.isoformat())
        return f"“{self.title}”: {', '.join(self.categories)}, {source}"

    @property
    def document(self) -> dict[str, Any]:
        """The correction as JSON types."""
        instant = self.corrected_at.isoformat(timespec="seconds")
        return {"title": self.title, "categories": [*self.categories], "corrected_at": instant}


def corrected_on(instant: str) -> str:
    """Formats source and day (UTC) of a correction: "corrected by a person on 2026-11-21"."""
    return f"corrected by a person on {instant[:10]}"


def write_corrections(home: Path, corrections: Iterable[Correction]) -> None:
    """Replaces corrections.json."""
    write_json(
        home / CORRECTIONS,
        [{**asdict(item), "corrected_at": item.corrected_at.isoformat()} for item in corrections],
    )


def read_corrections(home: Path, as_of: datetime.datetime | None = None) -> dict[str, Correction]:
    """Reads corrections by show key, oldest first; if ``as_of`` is set, only those made until then."""
    try:
        rows = json.loads((home / CORRECTIONS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    corrections = [
        Correction(
            show_key=row["show_key"],
            title=row["title"],
            categories=tuple(row["categories"]),
            corrected_at=datetime.datetime.fromisoformat(row["corrected_at"]),
        )
        for row in rows
    ]
    return {
        correction.show_key: correction
        for correction in corrections
        if as_of is None or correction.corrected_at <= as_of.astimezone()
    }


def labels_by_show(corrections: Mapping[str, Correction]) -> dict[str, tuple[str, ...]]:
    """Maps show keys to labels, without times, for the cache keys of stages."""
    return {show_key: correction.categories for show_key, correction in sorted(corrections.items())}
