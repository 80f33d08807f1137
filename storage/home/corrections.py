"""Reads and writes ``corrections.json``: categories of shows that a person has corrected.

Commands that predict categories read this file. The DuckDB catalogue has the same corrections
(storage/catalogue/corrections.py), but cannot be read while a guide is imported.
"""

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from storage.json_file import read_json_if_exists, write_json

CORRECTIONS = "corrections.json"


@dataclass(frozen=True, kw_only=True)
class Correction:
    """Categories of a show that a person has entered in place of predicted ones."""

    show_key: str
    title: str  # as in the model, or as entered by the person
    categories: tuple[str, ...]  # among the labels that the model had when the correction was made
    corrected_at: datetime.datetime  # UTC, timezone-aware

    def __str__(self) -> str:
        source = corrected_on(self.corrected_at.isoformat())
        return f"“{self.title}”: {', '.join(self.categories)}, {source}"

    @property
    def document(self) -> dict[str, Any]:
        """Returns title, categories and time of the correction as JSON types."""
        instant = self.corrected_at.isoformat(timespec="seconds")
        return {"title": self.title, "categories": [*self.categories], "corrected_at": instant}


def corrected_on(instant: str) -> str:
    """Returns a text with the day (UTC) of a correction, such as "corrected by a person on 2026-11-21"."""
    return f"corrected by a person on {instant[:10]}"


def write_corrections(home: Path, corrections: Iterable[Correction]) -> None:
    """Writes all corrections to corrections.json atomically."""
    rows = [
        {**asdict(correction), "corrected_at": correction.corrected_at.isoformat()}
        for correction in corrections
    ]
    write_json(home / CORRECTIONS, rows)


def read_corrections(home: Path, as_of: datetime.datetime | None = None) -> dict[str, Correction]:
    """Reads corrections.json; returns the corrections by show key, oldest first, or {} without the file.

    If ``as_of`` is set, corrections that were made later are left out.
    """
    corrections = [
        Correction(
            show_key=row["show_key"],
            title=row["title"],
            categories=tuple(row["categories"]),
            corrected_at=datetime.datetime.fromisoformat(row["corrected_at"]),
        )
        for row in read_json_if_exists(home / CORRECTIONS) or []
    ]
    return {
        correction.show_key: correction
        for correction in corrections
        if as_of is None or correction.corrected_at <= as_of.astimezone()
    }


def labels_by_show(corrections: Mapping[str, Correction]) -> dict[str, tuple[str, ...]]:
    """Returns the corrected categories by show key, for cache keys, which omit times of corrections."""
    return {show_key: correction.categories for show_key, correction in sorted(corrections.items())}
