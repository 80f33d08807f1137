"""The connection to MLflow at MLFLOW_TRACKING_URI (a server or database), by default SQLite in the home.

The first client of a process takes 2.1 s, and 1.5 s more for the migrations in a new environment, so it opens
while Prefect's server starts. ``guidespace similar`` reads the champion from the home's mlflow.db without
importing MLflow (2.3 s instead of 6.3 s).
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from storage.atomic import copy_if_missing
from storage.database_templates import copy_template, save_template
from storage.errors import ExpectedError
from storage.home.identity import read_home_id
from storage.home.marker import read_marker

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

EXPERIMENT = "guidespace"
MODEL_NAME = "guidespace-titles"
NAME_KEY = "registered_model"  # key in home.json
PAGES = "GUIDESPACE_MLFLOW_PAGES"  # URL of the pages, if MLFLOW_TRACKING_URI is a database
_DEFAULTS = {  # environment variables, unless the user has set them
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
}
_first_client = threading.Lock()  # MLflow's store registry is not thread-safe during initialization
# Tables and columns of MLflow's database that contain absolute folders.
FOLDERS = [("experiments", "artifact_location"), ("runs", "artifact_uri"), ("model_versions", "source")]
FOLDERS += [("model_versions", "storage_location"), ("logged_models", "artifact_location")]


class TrackingError(ExpectedError):
    """MLflow is in a state that prevents the operation; the message says why and what to do."""


class Connection:
    """MLflow's client, the experiment and the name of the registered model of a home."""

    def __init__(self, home: Path | str) -> None:
        self.home = Path(home).expanduser().resolve()
        self.artifacts = self.home / "mlflow"
        self.database = self.home / "mlflow.db"

    @property
    def uri(self) -> str:
        """MLFLOW_TRACKING_URI if set, else the home's SQLite database."""
        return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{self.database}"

    @property
    def shell_uri(self) -> str:
        """The URI quoted for a shell; the name of the variable if it may contain a password."""
        return shlex.quote(self.uri) if self.uses_home_database else '"$MLFLOW_TRACKING_URI"'

    @property
    def stores_artifacts_in_home(self) -> bool:
        """Whether artifacts are stored in the home: with any database, but not with a server."""
        return re.match(r"(sqlite|postgresql|mysql|mssql)(\+\w+)?:", self.uri) is not None

    @property
    def uses_home_database(self) -> bool:
        """Whether MLflow uses the home's mlflow.db, by default or by MLFLOW_TRACKING_URI."""
        return self.uri == f"sqlite:///{self.database}"

    def model_name(self, chosen: str | None) -> str:
        """Returns the name of the registered model: ``chosen``, or if None the name in home.json.

        The default is ``guidespace-titles``; on a server it ends with the home's id, so that each home has a
        separate champion.
        """
        if name := str(read_marker(self.home).get(NAME_KEY, "")) if chosen is None else chosen:
            return name
        return MODEL_NAME if self.uses_home_database else f"{MODEL_NAME}-{read_home_id(self.home) or 'new'}"

    def repair_moved_home(self) -> None:
        """Updates the folders in the database if the home has been moved."""
        if self.uses_home_database:
            relocate(self.database, EXPERIMENT, self.artifacts)

    @cached_property
    def client(self) -> MlflowClient:
        """MLflow's client; creates the database if needed."""
        for name, value in _DEFAULTS.items():
            os.environ.setdefault(name, value)
        logging.getLogger("alembic").setLevel(logging.WARNING)
        from mlflow.tracking import MlflowClient

        with _first_client:
            if self.uses_home_database and not self.database.exists():
                _create(self.database)
            self.repair_moved_home()
            return MlflowClient(tracking_uri=self.uri)

    @cached_property
    def experiment_id(self) -> str:
        """Id of the experiment, which is created if needed; raises TrackingError if it is deleted."""
        from mlflow.exceptions import MlflowException

        if (experiment := self.client.get_experiment_by_name(EXPERIMENT)) is None:
            folder = str(self.artifacts) if self.stores_artifacts_in_home else None
            try:
                return self.client.create_experiment(EXPERIMENT, artifact_location=folder)
            except MlflowException as error:  # another process may have created it
                if (experiment := self.client.get_experiment_by_name(EXPERIMENT)) is None:
                    raise error
        experiment_id = experiment.experiment_id
        if experiment.lifecycle_stage != "active":
            problem = f"MLflow's experiment {EXPERIMENT!r} (id {experiment_id}) is deleted"
            command = f"mlflow experiments restore --experiment-id {experiment_id}"
            raise TrackingError(f"{problem}. Restore it: MLFLOW_TRACKING_URI={self.shell_uri} {command}")
        return experiment_id


def _create(database: Path) -> None:
    """Creates MLflow's database atomically.

    MLflow commits each migration separately and cannot repeat one, so a database whose creation was
    interrupted would fail to open ("duplicate column name").
    """
    from mlflow.tracking import MlflowClient

    database.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="guidespace-mlflow-") as folder:
        migrated = Path(folder) / database.name
        if not copy_template("mlflow", migrated):
            MlflowClient(tracking_uri=f"sqlite:///{migrated}")
            save_template("mlflow", migrated)
        with _transaction(migrated, "rw") as connection:  # MLflow's default is the working folder
            location = str(database.parent / "mlflow" / "0")
            connection.execute("UPDATE experiments SET artifact_location = ?", [location])
        copy_if_missing(migrated, database)


def relocate(database: Path, experiment: str, artifacts: Path) -> None:
    """Updates the artifact folders below the previous location of a moved home, in one transaction.

    MLflow stores absolute folders, and its API cannot change them. The five columns have not changed since
    MLflow 2 (that of logged_models: MLflow 3). The folder of the experiment is the previous location.

    Raises:
        TrackingError: The database is read-only or locked.
    """
    old, new = "", str(artifacts)
    try:
        with _transaction(database, "rw") as connection:
            query = "SELECT artifact_location FROM experiments WHERE name = ?"
            (old,) = connection.execute(query, [experiment]).fetchone() or (new,)
            if old == new or not old.startswith("/"):  # not moved, or stored elsewhere by the user
                return
            for table, column in FOLDERS:
                below = f"{column} = ? OR substr({column}, 1, ?) = ?"
                update = f"UPDATE {table} SET {column} = ? || substr({column}, ?) WHERE {below}"
                connection.execute(update, [new, len(old) + 1, old, len(old) + 1, old + "/"])
    except sqlite3.Error as error:
        if old:  # otherwise the database or its tables do not exist yet
            moved = f"the home has moved from {Path(old).parent} to {artifacts.parent}, but {database}"
            advice = "Make it writable, or move the home back."
            raise TrackingError(f"{moved} cannot be updated: {error}. {advice}") from error


def aliased_version(database: Path, name: str, alias: str) -> tuple[str, str, str, str] | None:
    """Returns version, model digest, content digest and artifact folder of an aliased version, or None.

    Raises:
        LookupError: The database has another schema.
    """
    query = """
        SELECT CAST(v.version AS TEXT), COALESCE(t.value, ''), COALESCE(c.value, ''),
        COALESCE(v.storage_location, v.source)
        FROM registered_model_aliases AS a
        JOIN model_versions AS v ON v.name = a.name AND v.version = a.version
        LEFT JOIN model_version_tags AS t
        ON t.name = v.name AND t.version = v.version AND t.key = 'guidespace.model'
        LEFT JOIN model_version_tags AS c
        ON c.name = v.name AND c.version = v.version AND c.key = 'guidespace.content'
        WHERE a.name = ? AND a.alias = ?
    """
    try:
        with _transaction(database, "ro") as connection:
            return connection.execute(query, [name, alias]).fetchone()
    except sqlite3.Error as error:
        raise LookupError(f"{database}: {error}") from error


@contextmanager
def _transaction(database: Path, mode: str) -> Iterator[sqlite3.Connection]:
    """Opens a connection for one transaction, which an exception rolls back."""
    connection = sqlite3.connect(f"{database.as_uri()}?mode={mode}", uri=True, timeout=20)
    try:
        with connection:
            yield connection
    finally:
        connection.close()
