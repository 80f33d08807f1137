"""Numbered migrations: ``schema/NNNN_name.sql``, each applied once, in its own transaction, and recorded.

A file that has been released is never edited: a change is a new file. A database that holds a migration this code does
not know was made by a newer GuideSpace and is refused before anything in it is touched.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from storage.workspace import HomeError

SCHEMA = Path(__file__).resolve().parent / "schema"


@dataclass(frozen=True, kw_only=True)
class Migration:
    """One step of the schema.

    Attributes:
        version: From 1, without gaps.
        name: What it is about.
        sql: Statements, without BEGIN and COMMIT.
    """

    version: int
    name: str
    sql: str


def known_migrations(folder: Path = SCHEMA) -> list[Migration]:
    """The migrations of a folder, in order.

    Raises:
        ValueError: The numbers have a gap or a double, or a file is not named NNNN_name.sql.
    """
    found: list[Migration] = []
    for file in sorted(folder.glob("*.sql")):
        match = re.fullmatch(r"(\d{4})_(\w+)\.sql", file.name)
        if match is None or int(match[1]) != len(found) + 1:
            raise ValueError(f"{file.name}: expected {len(found) + 1:04d}_name.sql as the next migration")
        found.append(Migration(version=int(match[1]), name=match[2], sql=file.read_text(encoding="utf-8")))
    return found


def schema_version(connection: duckdb.DuckDBPyConnection) -> int:
    """Version of an open database; 0 when nothing was ever applied."""
    there = connection.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'migrations'").fetchall()[0][0]
    if not there:
        return 0
    return connection.execute("SELECT coalesce(max(version), 0) FROM migrations").fetchall()[0][0]


def migrate(connection: duckdb.DuckDBPyConnection, migrations: Sequence[Migration], where: str) -> list[Migration]:
    """Brings an open database to the newest of ``migrations``.

    Args:
        where: The database, for the message.

    Returns:
        What was applied just now.

    Raises:
        HomeError: The database is newer than the newest of them.
    """
    newest = migrations[-1].version if migrations else 0
    found = schema_version(connection)
    if found > newest:
        raise HomeError(f"{where} has schema version {found}, this GuideSpace knows versions up to {newest}. Use the GuideSpace that made it, or name another --home.")
    applied = [migration for migration in migrations if migration.version > found]
    for migration in applied:
        connection.begin()
        try:
            connection.execute("CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY, name VARCHAR NOT NULL, applied_at TIMESTAMP NOT NULL)")
            connection.execute(migration.sql)
            connection.execute("INSERT INTO migrations VALUES (?, ?, make_timestamp(epoch_us(now())))", [migration.version, migration.name])
            connection.commit()
        except BaseException:
            connection.rollback()
            raise
    return applied
