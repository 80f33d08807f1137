"""The command ``guidespace sql``: questions over what the last run published."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from flows.latest import read_latest
from storage.artifacts import Clustering, Corpus, Guide
from storage.catalogue.views import QueryError, ask, view_statements
from storage.workspace import HomeError, Workspace
from storage.yesterday import newest_first


def run_folders(home: str | Path) -> dict[str, Path]:
    """Where the last run's corpus lies, the clustering made of it, and the newest guide.

    Raises:
        HomeError: No run has finished, or what it made is gone.
    """
    workspace = Workspace(home, create=False)
    folder = Path(read_latest(home, "corpus")["corpus"])
    corpus = workspace.read(Corpus, folder.name)
    digest = corpus.digest if corpus else None
    clustering = next((found for found in newest_first(workspace, Clustering) if workspace.details(found).get("corpus") == digest), None)
    guide = next(newest_first(workspace, Guide), None)
    if corpus is None or clustering is None or guide is None or not (folder / "variants.parquet").exists():
        raise HomeError(f"{workspace.home} no longer holds all that its last run made; run `guidespace nightly --feed …` again")
    return {"guide": workspace.folder(guide), "corpus": folder, "clustering": workspace.folder(clustering)}


def answer(home: str | Path, query: str, assignments: list[str]) -> list[dict[str, Any]]:
    """Rows of a query, by column.

    Args:
        home: Of a finished run.
        query: SQL; ``$title`` and the like stand for values.
        assignments: ``title=Murder, She Wrote`` and the like.

    Returns:
        Values as DuckDB gives them; of columns with one name the later ones are numbered: ``title``, ``title_1``.

    Raises:
        QueryError: DuckDB refuses the query, or an assignment is none.
    """
    if wrong := [assignment for assignment in assignments if not assignment.partition("=")[1]]:
        raise QueryError(f"--with {wrong[0]!r}: expected NAME=VALUE, such as 'title=Murder, She Wrote'")
    values = {name: value for name, _, value in (assignment.partition("=") for assignment in assignments)}
    columns, rows = ask(run_folders(home), query, values)
    names = [name if not (before := columns[:place].count(name)) else f"{name}_{before}" for place, name in enumerate(columns)]
    return [dict(zip(names, row, strict=True)) for row in rows]


def plain(value: Any) -> Any:
    """A value as JSON has it: decimals are numbers, what is no number is null, dates and the like are text."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def statements(home: str | Path) -> str:
    """The views as SQL, for a DuckDB of one's own."""
    return view_statements(run_folders(home))
