"""Stores empty, migrated SQLite databases of Prefect and MLflow in the Python environment as templates.

A new database is a copy of the template, so that migrations run only once per version of Prefect (6 s) or
MLflow (1.5 s). If ``sys.prefix`` is not writable, no template is stored.
"""

import importlib.metadata
import os
import sqlite3
import sys
from contextlib import closing, suppress
from pathlib import Path

from storage.atomic import copy_if_missing, replaced_file


def copy_template(package: str, database: Path) -> bool:
    """Copies the template for the installed version of ``package`` to ``database`` unless that file exists.

    Returns:
        Whether a template exists.
    """
    if not os.access(template := _template_file(package), os.R_OK):
        return False
    copy_if_missing(template, database)
    return True


def save_template(package: str, database: Path) -> None:
    """Stores a copy of a migrated database as the template of ``package`` if the environment is writable."""
    template = _template_file(package)
    with suppress(OSError, sqlite3.Error):
        template.parent.mkdir(parents=True, exist_ok=True)
        with (
            replaced_file(template) as new_template,
            closing(sqlite3.connect(database)) as database_connection,
            closing(sqlite3.connect(new_template)) as template_connection,
        ):
            database_connection.backup(template_connection)


def _template_file(package: str) -> Path:
    return Path(sys.prefix, "share", "guidespace", f"{package}-{importlib.metadata.version(package)}.db")
