"""Contents of a home after a night, for comparison with another home."""

import json
from pathlib import Path
from typing import Any

from storage.catalogue.connection import Catalogue
from storage.home.latest import read_latest

TABLES = ("feeds", "programmes", "details", "originals", "channel_history", "windows", "rejects")


def catalogue_contents(home: Path) -> dict[str, tuple[int, int]]:
    """Rows of every table, and a sum of digests of their contents, but for the instants at which feeds were
    read."""
    instants = {"feeds": "EXCLUDE (read_at, grabbed_at)"}
    query = "SELECT count(*), sum(hash(row)::HUGEINT) FROM (SELECT * {} FROM {}) AS row"
    with Catalogue.open(home) as catalogue:
        execute = catalogue.connection.execute
        return {
            table: execute(query.format(instants.get(table, ""), table)).fetchall()[0] for table in TABLES
        }


def night_contents(home: Path) -> dict[str, Any]:
    """Returns the catalogue, and the scores and model digest of the last night."""
    latest = read_latest(home, "model")
    model = json.loads((Path(latest["model"]) / "artifact.json").read_text(encoding="utf-8"))
    scores = json.loads(Path(latest["scores"]).read_text(encoding="utf-8"))
    return {"catalogue": catalogue_contents(home), "scores": scores, "model": model["digest"]}
