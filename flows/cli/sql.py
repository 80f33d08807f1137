"""The command ``guidespace sql``: queries over what the last run published."""

import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from storage.artifacts import Artifact, Clustering, Corpus, Tonight
from storage.catalogue.likes import home_salt
from storage.catalogue.views import QueryError, run_query
from storage.home.guides import current_guide
from storage.home.latest import read_latest
from storage.home.workspace import HomeError, Workspace, newest_first


def run_folders(home: str | Path) -> dict[str, Path]:
    """Folders of the last run's corpus, nearest titles and clusters, of the current guide, and of the newest
    lists.

    Raises:
        HomeError: No run has finished, or what it made is gone.
    """
    workspace = Workspace(home, create=False)
    latest = read_latest(home, "corpus")
    folder = Path(latest["corpus"])
    corpus = workspace.read(Corpus, folder.name)
    digest = corpus.digest if corpus else None
    scored = _inputs(Path(latest["scores"]).with_name("artifact.json"), Clustering)
    details = ((found, workspace.details(found)) for found in newest_first(workspace, Clustering))
    made = (
        found
        for found, about in details
        if about.get("corpus") == digest and found.digest in (scored or [found.digest])
    )
    clustering, guide = next(made, None), current_guide(workspace)
    if corpus is None or clustering is None or guide is None or not (folder / "variants.parquet").exists():
        gone = f"{workspace.home} no longer holds all that its last run made"
        raise HomeError(f"{gone}; run `guidespace nightly --feed …` again")
    found = {"guide": workspace.folder(guide), "corpus": folder, "clustering": workspace.folder(clustering)}
    # Older versions kept the nearest titles with the clusters.
    found["nearest"] = workspace.home / str(workspace.details(clustering).get("nearest", clustering.path))
    if tonight := next(newest_first(workspace, Tonight), None):
        found["tonight"] = workspace.folder(tonight)
    return found


def _inputs(file: Path, kind: type[Artifact]) -> list[str]:
    """Digests of the inputs of a kind that an ``artifact.json`` names; empty if it is gone, or names none."""
    if not file.exists():
        return []
    made_of = json.loads(file.read_text(encoding="utf-8")).get("made_of", {})
    return [each["digest"] for each in made_of.get("inputs", ()) if each["kind"] == kind.kind]


def answer(home: str | Path, query: str, assignments: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of a query, by column; of columns with one name the later ones are numbered, ``title_1``.

    In it ``$title`` stands for the value of an assignment such as ``title=Murder, She Wrote``.

    Raises:
        QueryError: DuckDB refuses the query, or an assignment has no ``=``.
    """
    if wrong := [assignment for assignment in assignments if "=" not in assignment]:
        raise QueryError(f"--with {wrong[0]!r}: expected NAME=VALUE, such as 'title=Murder, She Wrote'")
    values = dict(assignment.split("=", 1) for assignment in assignments)
    salt = home_salt(Workspace(home, create=False).home) if "tonight_of" in query.lower() else ""
    columns, rows = run_query(run_folders(home), query, values, salt)
    before = [columns[:number].count(name) for number, name in enumerate(columns)]
    names = [f"{name}_{count}" if count else name for name, count in zip(columns, before, strict=True)]
    return [dict(zip(names, row, strict=True)) for row in rows]


def plain(value: Any) -> Any:
    """A value as JSON: decimals as numbers, NaN and infinity as null, dates and the like as text."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
