"""What servers said of the feeds that were read last, and what a location's feeds came to then."""

from __future__ import annotations

from storage.catalogue.connection import Catalogue
from storage.catalogue.ledger import Counts


def recall_validators(catalogue: Catalogue, location: str) -> tuple[str | None, str | None]:
    """(ETag, Last-Modified) of a source that is a URL; both None where nothing is known."""
    rows = catalogue.connection.execute("SELECT etag, last_modified FROM validators WHERE source = ?", [location]).fetchall()
    return rows[0] if rows else (None, None)


def note_validators(catalogue: Catalogue, location: str, etag: str | None, last_modified: str | None) -> None:
    """Remembers them; to be called when all that the location holds is committed."""
    catalogue.connection.execute("INSERT OR REPLACE INTO validators VALUES (?, ?, ?)", [location, etag, last_modified])


def last_readings(catalogue: Catalogue, location: str) -> list[tuple[str, str, Counts]]:
    """Source, zone and counts of the newest grab of each feed of a location (several where it is a zip of guides)."""
    rows = catalogue.connection.execute(
        """
        SELECT source, zone, seen, stored, duplicates, rejected
        FROM feeds
        WHERE source = $location OR starts_with(source, $location || '!')
        QUALIFY row_number() OVER (PARTITION BY source ORDER BY grabbed_at DESC, feed_id DESC) = 1
        ORDER BY source
        """,
        {"location": location},
    ).fetchall()
    return [(row[0], row[1], Counts(seen=row[2], stored=row[3], duplicates=row[4], rejected=row[5])) for row in rows]
