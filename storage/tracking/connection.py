"""Where MLflow is: a server or database named by MLFLOW_TRACKING_URI, else SQLite in the home.

The first client of a process costs 2.1 s, the first of an environment 1.5 s more (migrations): it opens while
Prefect's server starts. ``guidespace similar`` reads the champion from the home's mlflow.db, without MLflow
(2.3 s against 6.3 s in all).
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
CHOSEN_NAME = "registered_model"  # key in home.json
PAGES = (
    "GUIDESPACE_MLFLOW_PAGES"  # URL of a server that shows a database of MLFLOW_TRACKING_URI (guidespace up)
)
_QUIET = {  # unless the user has set them
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
}
_first_client = threading.Lock()  # MLflow's store registry is not made for two first clients at a time
# Table and column of the absolute folders in MLflow's database.
FOLDERS = [("experiments", "artifact_location"), ("runs", "artifact_uri"), ("model_versions", "source")]
FOLDERS += [("model_versions", "storage_location"), ("logged_models", "artifact_location")]


class TrackingError(ExpectedError):
    """MLflow cannot be used as it is; the message says what was found and what to do."""


class Connection:
    """A client of MLflow, the experiment in it, and the registered model's name."""

    def __init__(self, home: Path | str) -> None:
        self.home = Path(home).expanduser().resolve()
        self.artifacts = self.home / "mlflow"
        self.database = self.home / "mlflow.db"

    @property
    def uri(self) -> str:
        """MLFLOW_TRACKING_URI if set, else the home's SQLite database."""
        return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{self.database}"

    @property
    def in_shell(self) -> str:
        """The URI as a word of a shell command; one from the environment may hold a password."""
        return shlex.quote(self.uri) if self.is_own else '"$MLFLOW_TRACKING_URI"'

    @property
    def keeps_artifacts(self) -> bool:
        """Whether artifacts are in the home: with its own or another database, not with a server."""
        return re.match(r"(sqlite|postgresql|mysql|mssql)(\+\w+)?:", self.uri) is not None

    @property
    def is_own(self) -> bool:
        """Whether MLflow is in the home's own database, also where MLFLOW_TRACKING_URI names that one."""
        return self.uri == f"sqlite:///{self.database}"

    def model_name(self, chosen: str | None) -> str:
        """The registered model: as chosen (None: as home.json has it), else ``guidespace-titles``.

        On a server with the home's id, so that homes never take each other's champion.
        """
        name = str(read_marker(self.home).get(CHOSEN_NAME, "")) if chosen is None else chosen
        return name or (MODEL_NAME if self.is_own else f"{MODEL_NAME}-{read_home_id(self.home) or 'new'}")

    def settle(self) -> None:
        """Rewrites the folders in the database of a home that moved."""
        if self.is_own:
            relocate(self.database, EXPERIMENT, self.artifacts)

    @cached_property
    def client(self) -> MlflowClient:
        """The client; the first one creates what is missing in the database."""
        for name, value in _QUIET.items():
            os.environ.setdefault(name, value)
        logging.getLogger("alembic").setLevel(logging.WARNING)
        from mlflow.tracking import MlflowClient

        with _first_client:
            if self.is_own and not self.database.exists():
                _create(self.database)
            self.settle()
            return MlflowClient(tracking_uri=self.uri)

    @cached_property
    def experiment_id(self) -> str:
        """The experiment, created where there is none; a TrackingError where somebody deleted it."""
        from mlflow.exceptions import MlflowException

        if (experiment := self.client.get_experiment_by_name(EXPERIMENT)) is None:
            place = str(self.artifacts) if self.keeps_artifacts else None
            try:
                return self.client.create_experiment(EXPERIMENT, artifact_location=place)
            except MlflowException as error:  # unless another process was faster
                if (experiment := self.client.get_experiment_by_name(EXPERIMENT)) is None:
                    raise error
        number = experiment.experiment_id
        if experiment.lifecycle_stage != "active":
            problem = f"MLflow's experiment {EXPERIMENT!r} (id {number}) is deleted"
            command = f"mlflow experiments restore --experiment-id {number}"
            raise TrackingError(f"{problem}. Bring it back: MLFLOW_TRACKING_URI={self.in_shell} {command}")
        return number


def _create(database: Path) -> None:
    """Creates MLflow's database whole or not at all.

    Its migrations commit one by one, and none can be repeated: a database whose creation was interrupted
    would never open again ("duplicate column name").
    """
    from mlflow.tracking import MlflowClient

    database.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="guidespace-mlflow-") as folder:
        migrated = Path(folder) / database.name
        if not copy_template("mlflow", migrated):
            MlflowClient(tracking_uri=f"sqlite:///{migrated}")
            save_template("mlflow", migrated)
        with _opened(
            migrated, "rw"
        ) as connection:  # of the experiment Default: MLflow chose the working folder
            location = str(database.parent / "mlflow" / "0")
            connection.execute("UPDATE experiments SET artifact_location = ?", [location])
        copy_if_missing(migrated, database)


def relocate(database: Path, experiment: str, artifacts: Path) -> None:
    """Rewrites the artifact folders of a home that moved, in one transaction; only those below its old place.

    MLflow stores absolute folders, and its API can change none of them; the five columns are unchanged since
    MLflow 2 (logged_models: 3). The experiment's folder says where the home was. A TrackingError where
    ``mlflow.db`` is read-only or locked.
    """
    old, new = "", str(artifacts)
    try:
        with _opened(database, "rw") as connection:
            query = "SELECT artifact_location FROM experiments WHERE name = ?"
            (old,) = connection.execute(query, [experiment]).fetchone() or (new,)
            if old == new or not old.startswith("/"):  # in its place, or kept elsewhere by the user
                return
            for table, column in FOLDERS:
                below = f"{column} = ? OR substr({column}, 1, ?) = ?"
                update = f"UPDATE {table} SET {column} = ? || substr({column}, ?) WHERE {below}"
                connection.execute(update, [new, len(old) + 1, old, len(old) + 1, old + "/"])
    except sqlite3.Error as error:
        if old:  # else there is no database, or no table in it yet: MLflow will make them
            moved = f"the home moved from {Path(old).parent} to {artifacts.parent}, and {database}"
            advice = "Make it writable, or move the home back."
            raise TrackingError(f"{moved} cannot be rewritten: {error}. {advice}") from error


def aliased_version(database: Path, name: str, alias: str) -> tuple[str, str, str, str] | None:
    """Version, tags of digest and content, and artifact folder of an alias, or None; a LookupError without
    the columns.
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
        with _opened(database, "ro") as connection:
            return connection.execute(query, [name, alias]).fetchone()
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
