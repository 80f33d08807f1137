"""Empty SQLite databases of other packages, migrated once a version and kept in the environment
(``sys.prefix``), where that can be written: Prefect's migrations take 6 s of a processor, MLflow's 1.5 s.
"""

import importlib.metadata
import os
import sqlite3
import sys
from contextlib import closing, suppress
from pathlib import Path

from storage.atomic import copy_unless_there, replaced_file


def copy_empty(package: str, database: Path) -> bool:
    """Copies the kept database of the installed version of a package, whole or not at all; False: none is."""
    if not os.access(empty := _place(package), os.R_OK):
        return False
    copy_unless_there(empty, database)
    return True


def keep_empty(package: str, database: Path) -> None:
    """Keeps a copy of a database that was just migrated, unless the environment cannot be written."""
    empty = _place(package)
    with suppress(OSError, sqlite3.Error):
        empty.parent.mkdir(parents=True, exist_ok=True)
        with (
            replaced_file(empty) as new,
            closing(sqlite3.connect(database)) as made,
            closing(sqlite3.connect(new)) as copy,
        ):
            made.backup(copy)


def _place(package: str) -> Path:
    return Path(sys.prefix, "share", "guidespace", f"{package}-{importlib.metadata.version(package)}.db")
