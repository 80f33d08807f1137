"""What the catalogue holds, in a form that other programs read.

The writer publishes it as ``status.json`` in the home after each feed that is committed; whoever asks reads that file
and never opens the database, so neither waits for the other.
"""

from __future__ import annotations

import json
from pathlib import Path

from storage.catalogue.connection import Catalogue
from storage.catalogue.lost import LOST
from storage.json_file import write_json

FILE = "status.json"


def describe(catalogue: Catalogue) -> dict[str, object]:
    """Counts of an open catalogue.

    Returns:
        ``{"feeds": [{"source", "seen", "stored", "duplicates", "rejected", "rejects": {reason: n}, "lost"}], "channels",
        "programmes", "titles", "categories"}``; feeds in the order they were read, titles and categories distinct. ``lost``: see lost.py.
    """
    connection = catalogue.connection
    rejects: dict[int, dict[str, int]] = {}
    for feed_id, reason, count in connection.execute("SELECT feed_id, reason, count(*) FROM rejects GROUP BY ALL ORDER BY ALL").fetchall():
        rejects.setdefault(feed_id, {})[reason] = count
    feeds = [
        {"source": source, "seen": seen, "stored": stored, "duplicates": duplicates, "rejected": rejected, "rejects": rejects.get(feed_id, {}), "lost": lost}
        for feed_id, source, seen, stored, duplicates, rejected, lost in connection.execute(
            f"SELECT feed_id, source, seen, stored, duplicates, rejected, {LOST} FROM feeds ORDER BY feed_id"
        ).fetchall()
    ]
    programmes, titles = connection.execute("SELECT count(*), count(DISTINCT title) FROM programmes").fetchall()[0]
    channels = connection.execute("SELECT count(*) FROM channels").fetchall()[0][0]
    categories = connection.execute("SELECT count(DISTINCT category) FROM (SELECT unnest(categories) AS category FROM programmes)").fetchall()[0][0]
    return {"feeds": feeds, "channels": channels, "programmes": programmes, "titles": titles, "categories": categories}


def publish_status(catalogue: Catalogue) -> None:
    """Writes ``status.json`` whole: a reader sees the old one or the new one."""
    write_json(catalogue.home / FILE, describe(catalogue))


def status(home: Path) -> dict[str, object]:
    """What the catalogue of a home held when a feed was last committed; zeros for a home that never read one."""
    try:
        return json.loads((Path(home) / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {"feeds": [], "channels": 0, "programmes": 0, "titles": 0, "categories": 0}
