"""Runs SQL queries over the artifacts of the last run, for the command ``guidespace sql``."""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from storage.artifacts import Artifact, Clustering, Corpus, Tonight, read_inputs
from storage.catalogue.likes import home_salt
from storage.catalogue.views import QueryError, run_query
from storage.home.files import mark_used
from storage.home.guides import current_guide
from storage.home.latest import read_latest
from storage.home.workspace import HomeError, Workspace, newest_first


def run_folders(home: str | Path) -> dict[str, Path]:
    """Returns the folders that queries read, by name: artifacts of the last run, guide, recommendations.

    Raises:
        HomeError: No run has finished, or one of its artifacts is missing.
    """
    workspace = Workspace(home, create=False)
    latest = read_latest(home, "corpus")
    folder = Path(latest["corpus"])
    corpus = workspace.read(Corpus, folder.name)
    digest = corpus.digest if corpus else None
    scored_digests = _input_digests(Path(latest["scores"]).with_name("artifact.json"), Clustering)
    clusterings = (
        candidate
        for candidate in newest_first(workspace, Clustering)
        if workspace.details(candidate).get("corpus") == digest
        and (not scored_digests or candidate.digest in scored_digests)
    )
    clustering, guide = next(clusterings, None), current_guide(workspace)
    if corpus is None or clustering is None or guide is None or not (folder / "variants.parquet").exists():
        problem = f"{workspace.home} no longer has all artifacts of its last run"
        raise HomeError(f"{problem}; run `guidespace nightly --feed …` again")
    folders = {"guide": workspace.folder(guide), "corpus": folder, "clustering": workspace.folder(clustering)}
    # Older versions stored the nearest titles with the clusters.
    folders["nearest"] = workspace.home / str(workspace.details(clustering).get("nearest", clustering.path))
    if tonight := next(newest_first(workspace, Tonight), None):
        folders["tonight"] = workspace.folder(tonight)
    for used_folder in folders.values():
        mark_used(used_folder)
    return folders


def _input_digests(file: Path, kind: type[Artifact]) -> list[str]:
    """Returns the digests of the inputs of type ``kind`` in an ``artifact.json``; [] if there is no file."""
    if not file.exists():
        return []
    return [source["digest"] for source in read_inputs(file.parent) if source["kind"] == kind.kind]


def query_rows(home: str | Path, query: str, assignments: Sequence[str]) -> list[dict[str, Any]]:
    """Runs a query and returns its rows as dictionaries from column names to values.

    An assignment such as ``title=Murder, She Wrote`` sets the value of ``$title`` in the query. Repeated
    column names get a number, such as ``title_1``.

    Raises:
        QueryError: DuckDB rejects the query, or an assignment has no ``=``.
    """
    if invalid_assignments := [assignment for assignment in assignments if "=" not in assignment]:
        raise QueryError(
            f"--with {invalid_assignments[0]!r}: expected NAME=VALUE, such as 'title=Murder, She Wrote'"
        )
    values = dict(assignment.split("=", 1) for assignment in assignments)
    salt = home_salt(Workspace(home, create=False).home) if "tonight_of" in query.lower() else ""
    columns, rows = run_query(run_folders(home), query, values, salt)
    suffixes = [columns[:number].count(name) for number, name in enumerate(columns)]  # 0 for the first
    names = [f"{name}_{suffix}" if suffix else name for name, suffix in zip(columns, suffixes, strict=True)]
    return [dict(zip(names, row, strict=True)) for row in rows]


def to_json_values(value: Any) -> Any:
    """Converts a value of a query to JSON: decimals to numbers, NaN and infinity to null, others to text."""
    if isinstance(value, Mapping):
        return {str(name): to_json_values(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_values(item) for item in value]
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
