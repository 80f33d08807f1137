"""Empty SQLite databases of other packages, migrated once a version and kept in the environment
(``sys.prefix``), where that can be written: Prefect's migrations take 6 s of a processor, MLflow's 1.5 s.
"""

import importlib.metadata
import os
import sqlite3
import sys
from contextlib import closing, suppress
from pathlib import Path

from storage.json_file import copy_unless_there


def copy_empty(package: str, database: Path) -> bool:
    """Copies the kept database of the installed version of a package, whole or not at all; False: none is."""
    if not (empty := _place(package)).exists():
        return False
    copy_unless_there(empty, database)
    return True


def keep_empty(package: str, database: Path) -> None:
    """Keeps a copy of a database that was just migrated."""
    empty = _place(package)
    with suppress(OSError):
        empty.parent.mkdir(parents=True, exist_ok=True)
        temporary = empty.with_suffix(f".{os.getpid()}.tmp")
        with closing(sqlite3.connect(database)) as made, closing(sqlite3.connect(temporary)) as copy:
            made.backup(copy)
        temporary.replace(empty)


def _place(package: str) -> Path:
    return Path(sys.prefix, "share", "guidespace", f"{package}-{importlib.metadata.version(package)}.db")
