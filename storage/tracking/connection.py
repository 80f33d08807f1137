"""Connects to MLflow at MLFLOW_TRACKING_URI (a server or database), by default to mlflow.db in the home.

The first MLflow client of a process takes 2.1 s, and 1.5 s more in a new environment, where the database is
migrated. Therefore, the client is created while Prefect's server starts. ``guidespace similar`` reads the
version of the served model from mlflow.db without importing MLflow (2.3 s instead of 6.3 s).
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
NAME_KEY = "registered_model"  # key of the name of the registered model in home.json
# Environment variable with the URL of MLflow's web pages, which is used if the tracking URI is a database.
PAGES_VARIABLE = "GUIDESPACE_MLFLOW_PAGES"
_ENVIRONMENT_DEFAULTS = {  # environment variables that are set unless the user has set them
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
}
_client_lock = threading.Lock()  # MLflow's store registry is not thread-safe during initialization
# Tables and columns of MLflow's database that contain absolute paths of folders.
PATH_COLUMNS = [("experiments", "artifact_location"), ("runs", "artifact_uri"), ("model_versions", "source")]
PATH_COLUMNS += [("model_versions", "storage_location"), ("logged_models", "artifact_location")]


class TrackingError(ExpectedError):
    """Error: MLflow does not permit an operation. The message says why and what to do."""


class MlflowConnection:
    """Gives access to the MLflow client, the experiment and the name of the registered model of a home."""

    def __init__(self, home: Path | str) -> None:
        self.home = Path(home).expanduser().resolve()
        self.artifacts = self.home / "mlflow"
        self.database = self.home / "mlflow.db"

    @property
    def uri(self) -> str:
        """Returns MLFLOW_TRACKING_URI if the variable is set, else the URI of the home's SQLite database."""
        return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{self.database}"

    @property
    def shell_uri(self) -> str:
        """Returns the URI quoted for a shell, or "$MLFLOW_TRACKING_URI" if the URI may contain a password."""
        return shlex.quote(self.uri) if self.uses_home_database else '"$MLFLOW_TRACKING_URI"'

    @property
    def stores_artifacts_in_home(self) -> bool:
        """Returns whether MLflow's artifacts are stored in the home, which is so if the URI is a database."""
        return re.match(r"(sqlite|postgresql|mysql|mssql)(\+\w+)?:", self.uri) is not None

    @property
    def uses_home_database(self) -> bool:
        """Returns whether MLflow uses the file mlflow.db in the home."""
        return self.uri == f"sqlite:///{self.database}"

    def model_name(self, requested_name: str | None) -> str:
        """Returns the name of the registered model.

        The name is ``requested_name`` or, if this is None, the name in home.json. If that is empty, the name
        is ``guidespace-titles``, to which the id of the home is appended on a server that homes may share.
        """
        stored_name = str(read_marker(self.home).get(NAME_KEY, ""))
        name = stored_name if requested_name is None else requested_name
        if name or self.uses_home_database:
            return name or MODEL_NAME
        return f"{MODEL_NAME}-{read_home_id(self.home) or 'new'}"

    def repair_moved_home(self) -> None:
        """Updates the paths in mlflow.db if the home has been moved."""
        if self.uses_home_database:
            relocate_artifacts(self.database, EXPERIMENT, self.artifacts)

    @cached_property
    def client(self) -> MlflowClient:
        """Returns the MLflow client; creates the database if it is missing."""
        for name, value in _ENVIRONMENT_DEFAULTS.items():
            os.environ.setdefault(name, value)
        logging.getLogger("alembic").setLevel(logging.WARNING)
        from mlflow.tracking import MlflowClient

        with _client_lock:
            if self.uses_home_database and not self.database.exists():
                _create_database(self.database)
            self.repair_moved_home()
            return MlflowClient(tracking_uri=self.uri)

    @cached_property
    def experiment_id(self) -> str:
        """Returns the id of the MLflow experiment; creates the experiment if it is missing.

        Raises:
            TrackingError: The experiment was deleted.
        """
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
            problem = f"MLflow's experiment {EXPERIMENT!r} (id {experiment_id}) was deleted"
            command = f"mlflow experiments restore --experiment-id {experiment_id}"
            raise TrackingError(f"{problem}. Restore it: MLFLOW_TRACKING_URI={self.shell_uri} {command}")
        return experiment_id


def _create_database(database: Path) -> None:
    """Creates MLflow's SQLite database atomically.

    MLflow commits each migration separately and cannot repeat a migration. If the creation of a database is
    interrupted, MLflow can therefore not open the database ("duplicate column name").
    """
    from mlflow.tracking import MlflowClient

    database.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="guidespace-mlflow-") as folder:
        new_database = Path(folder) / database.name
        if not copy_template("mlflow", new_database):
            MlflowClient(tracking_uri=f"sqlite:///{new_database}")
            save_template("mlflow", new_database)
        with sqlite_transaction(new_database, "rw") as connection:
            location = str(database.parent / "mlflow" / "0")  # MLflow's default is the working folder
            connection.execute("UPDATE experiments SET artifact_location = ?", [location])
        copy_if_missing(new_database, database)


def relocate_artifacts(database: Path, experiment: str, artifacts: Path) -> None:
    """Updates the paths of artifacts in MLflow's database after a home was moved, in one transaction.

    MLflow stores absolute paths, and its API cannot change them. The columns PATH_COLUMNS have not changed
    since MLflow 2 (the column of logged_models: since MLflow 3). The previous folder is read from the
    experiment.

    Args:
        database: MLflow's SQLite database.
        experiment: Name of the experiment.
        artifacts: Folder in which MLflow's artifacts are now.

    Raises:
        TrackingError: The database is read-only or locked.
    """
    old_folder, new_folder = "", str(artifacts)
    try:
        with sqlite_transaction(database, "rw") as connection:
            query = "SELECT artifact_location FROM experiments WHERE name = ?"
            (old_folder,) = connection.execute(query, [experiment]).fetchone() or (new_folder,)
            # the home was not moved, or the user has configured another location of artifacts
            if old_folder == new_folder or not old_folder.startswith("/"):
                return
            for table, column in PATH_COLUMNS:
                condition = f"{column} = ? OR substr({column}, 1, ?) = ?"
                update = f"UPDATE {table} SET {column} = ? || substr({column}, ?) WHERE {condition}"
                connection.execute(
                    update,
                    [new_folder, len(old_folder) + 1, old_folder, len(old_folder) + 1, old_folder + "/"],
                )
    except sqlite3.Error as error:
        if old_folder:  # otherwise the database or its tables do not exist yet
            raise TrackingError(
                f"the home has moved from {Path(old_folder).parent} to {artifacts.parent}, but the paths in "
                f"{database} cannot be updated: {error}. Make this file writable, or move the home back."
            ) from error


@contextmanager
def sqlite_transaction(database: Path, mode: str) -> Iterator[sqlite3.Connection]:
    """Yields an SQLite connection with one transaction, which is rolled back if the block raises."""
    connection = sqlite3.connect(f"{database.as_uri()}?mode={mode}", uri=True, timeout=20)
    try:
        with connection:
            yield connection
    finally:
        connection.close()
