"""The home's own mlflow.db, read and mended without MLflow: what its interface has no call for.

MLflow stores absolute artifact folders (of the experiment, each run, each model, each model version), so a home that was moved,
copied or mounted elsewhere would show broken artifacts and, worse, write new ones to the old place. MLflow can change none of
them; ``relocate`` does, in one transaction, and touches only folders below the old place. Reading the champion's place straight
from the database spares ``guidespace similar`` the two seconds of ``import mlflow``. Both know five columns of MLflow's
schema (unchanged since MLflow 2; logged_models since 3), and both step back when these are not there: a champion that
cannot be read here is asked of MLflow.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PLACES = (
    ("experiments", "artifact_location"),
    ("runs", "artifact_uri"),
    ("logged_models", "artifact_location"),
    ("model_versions", "source"),
    ("model_versions", "storage_location"),
)


def relocate(database: Path, experiment: str, artifacts: Path) -> bool:
    """Rewrites the artifact folders of a home that is not where it was.

    Args:
        database: mlflow.db of the home; nothing happens while there is none.
        experiment: Name of the experiment whose folder tells where the home was.
        artifacts: Where the artifacts are now.

    Returns:
        Whether anything was rewritten.

    Raises:
        OSError: It must be rewritten and cannot be (read only, locked).
    """
    if not database.exists():
        return False
    old = ""
    try:
        with _opened(database, "rw") as connection:
            row = connection.execute("SELECT artifact_location FROM experiments WHERE name = ?", (experiment,)).fetchone()
            old = row[0] if row else str(artifacts)
            if old == str(artifacts) or not old.startswith("/"):  # in its place, or kept elsewhere by whoever set it up
                return False
            for table, column in PLACES:
                connection.execute(
                    f"UPDATE {table} SET {column} = ? || substr({column}, ?) WHERE {column} = ? OR substr({column}, 1, ?) = ?",
                    (str(artifacts), len(old) + 1, old, len(old) + 1, old + "/"),
                )
            return True
    except sqlite3.Error as error:
        if not old:
            return False  # no table of experiments yet: MLflow will make them
        raise OSError(
            f"the home moved from {Path(old).parent} to {artifacts.parent}, and {database} cannot be rewritten: {error}. Make it writable, or move the home back."
        ) from error


def aliased_version(database: Path, name: str, alias: str) -> tuple[str, str, str] | None:
    """Version, digest tag and artifact folder of a registered model's alias.

    Returns:
        None when there is no such alias.

    Raises:
        LookupError: The database does not have the columns that are known here.
    """
    try:
        with _opened(database, "ro") as connection:
            return connection.execute(
                """
                SELECT CAST(v.version AS TEXT), COALESCE(t.value, ''), COALESCE(v.storage_location, v.source)
                FROM registered_model_aliases AS a
                JOIN model_versions AS v ON v.name = a.name AND v.version = a.version
                LEFT JOIN model_version_tags AS t ON t.name = v.name AND t.version = v.version AND t.key = 'guidespace.model'
                WHERE a.name = ? AND a.alias = ?
                """,
                (name, alias),
            ).fetchone()
    except sqlite3.Error as error:
        raise LookupError(f"{database}: {error}") from error


@contextmanager
def _opened(database: Path, mode: str) -> Iterator[sqlite3.Connection]:
    """One transaction, committed unless an exception leaves the block; closed in any case."""
    connection = sqlite3.connect(f"{database.as_uri()}?mode={mode}", uri=True, timeout=20)
    try:
        with connection:
            yield connection
    finally:
        connection.close()
