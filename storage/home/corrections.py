"""``corrections.json``: categories of shows as a person corrected them, for the commands that predict.

The catalogue keeps them (storage/catalogue/corrections.py); this copy is readable while a guide is read.
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
    """What a person says of a show."""

    show_key: str
    title: str  # as the model has it, else as it was given
    categories: tuple[str, ...]  # labels of the model that served then
    corrected_at: datetime.datetime  # UTC, with its zone

    def __str__(self) -> str:
        made_on = corrected_on(self.corrected_at.isoformat())
        return f"“{self.title}”: {', '.join(self.categories)}, {made_on}"

    @property
    def document(self) -> dict[str, Any]:
        """As JSON."""
        made_at = self.corrected_at.isoformat(timespec="seconds")
        return {"title": self.title, "categories": [*self.categories], "corrected_at": made_at}


def corrected_on(instant: str) -> str:
    """Who decided on categories, and on which day, UTC."""
    return f"corrected by a person on {instant[:10]}"


def write_corrections(home: Path, corrections: Iterable[Correction]) -> None:
    """Replaces the file."""
    rows = [asdict(one) | {"corrected_at": one.corrected_at.isoformat()} for one in corrections]
    write_json(home / CORRECTIONS, rows)


def read_corrections(home: Path, as_of: datetime.datetime | None = None) -> dict[str, Correction]:
    """Corrections by show key, the oldest first; only those made until ``as_of``, where it is given."""
    try:
        rows = json.loads((home / CORRECTIONS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    found = [
        Correction(
            show_key=row["show_key"],
            title=row["title"],
            categories=tuple(row["categories"]),
            corrected_at=datetime.datetime.fromisoformat(row["corrected_at"]),
        )
        for row in rows
    ]
    return {one.show_key: one for one in found if as_of is None or one.corrected_at <= as_of.astimezone()}


def labels_by_show(corrections: Mapping[str, Correction]) -> dict[str, tuple[str, ...]]:
    """Show key to labels, without times: what a stage learns from, and its cache key depends on."""
    return {show: one.categories for show, one in sorted(corrections.items())}
