"""Stores users' corrections of categories in the DuckDB catalogue, one row per show.

After each change, all corrections are written to ``corrections.json`` (storage/home/corrections.py), because
other processes cannot read the catalogue while a guide is imported.
"""

import datetime
from typing import Any

from storage.catalogue.connection import Catalogue
from storage.catalogue.feeds import to_naive_utc
from storage.home.corrections import Correction, write_corrections

_COLUMNS = "show_key, title, categories, corrected_at"


def store_correction(catalogue: Catalogue, correction: Correction) -> None:
    """Stores a correction in place of an earlier correction of the show, and updates ``corrections.json``."""
    row = [
        correction.show_key,
        correction.title,
        [*correction.categories],
        to_naive_utc(correction.corrected_at),
    ]
    query = f"INSERT OR REPLACE INTO corrections ({_COLUMNS}) VALUES (?, ?, ?, ?)"
    catalogue.connection.execute(query, row)
    publish_corrections(catalogue)


def remove_correction(catalogue: Catalogue, show_key: str) -> Correction | None:
    """Removes the correction of a show and updates ``corrections.json``.

    Returns the removed correction, or None if the show has no correction.
    """
    query = f"DELETE FROM corrections WHERE show_key = ? RETURNING {_COLUMNS}"
    rows = catalogue.connection.execute(query, [show_key]).fetchall()
    publish_corrections(catalogue)
    return _to_correction(*rows[0]) if rows else None


def publish_corrections(catalogue: Catalogue) -> None:
    """Writes all corrections to ``corrections.json`` atomically, oldest first."""
    query = f"SELECT {_COLUMNS} FROM corrections ORDER BY corrected_at, show_key"
    rows = catalogue.connection.execute(query).fetchall()
    write_corrections(catalogue.home, [_to_correction(*row) for row in rows])


def _to_correction(show_key: str, title: str, categories: list[str], corrected_utc: Any) -> Correction:
    corrected_at = corrected_utc.replace(tzinfo=datetime.UTC)
    return Correction(show_key=show_key, title=title, categories=tuple(categories), corrected_at=corrected_at)
