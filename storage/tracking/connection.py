"""Where MLflow is: a server or database named by MLFLOW_TRACKING_URI, else SQLite in the home.

Without a server the artifacts are in the home.

The first client of a process costs about a second and a half for ``import mlflow`` and 0.6 s for its database layer; the first
client of a home 1.1 s more, for MLflow builds its database by replaying all its migrations. There is no supported shortcut
(creating the tables in one go and stamping the version is private to MLflow), so the command opens the first client while
Prefect's server starts.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import threading
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from storage.tracking.local_database import relocate

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

EXPERIMENT = "guidespace"
_first_client = threading.Lock()  # MLflow's store registry is not made for two first clients at a time


class TrackingError(Exception):
    """MLflow cannot be used as it is; the message says what was found and what to do."""


class Connection:
    """A client of MLflow and the experiment in it.

    A home may be moved or copied: MLflow's database holds absolute folders, so they are rewritten on opening when the home's own
    database names another place (see local_database.relocate). With a server there is nothing to rewrite: artifacts are its own.

    Args:
        home: Folder for mlflow.db and mlflow/ where no server is set.
    """

    def __init__(self, home: Path | str) -> None:
        self.home = Path(home).expanduser().resolve()

    @property
    def is_local(self) -> bool:
        """Whether database and artifacts are the home's own."""
        return not os.environ.get("MLFLOW_TRACKING_URI")

    @property
    def uri(self) -> str:
        """MLFLOW_TRACKING_URI if set, else the home's SQLite database."""
        return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{self.database}"

    @property
    def in_shell(self) -> str:
        """The URI as a word of a shell command; one from the environment may hold a password."""
        return shlex.quote(self.uri) if self.is_local else '"$MLFLOW_TRACKING_URI"'

    @property
    def keeps_artifacts(self) -> bool:
        """Whether artifacts are in the home: with its own or another database; a server keeps them itself."""
        return re.match(r"(sqlite|postgresql|mysql|mssql)(\+\w+)?:", self.uri) is not None

    @property
    def artifacts(self) -> Path:
        """Where artifacts are kept when there is no server."""
        return self.home / "mlflow"

    @property
    def database(self) -> Path:
        """The home's own database."""
        return self.home / "mlflow.db"

    def settle(self) -> None:
        """Makes a home that moved whole again; nothing to do for one that did not, or with a server.

        Raises:
            TrackingError: Its database cannot be rewritten.
        """
        if self.is_local:
            try:
                relocate(self.database, EXPERIMENT, self.artifacts)
            except OSError as error:
                raise TrackingError(str(error)) from error

    @cached_property
    def client(self) -> MlflowClient:
        """The client; the first one creates what is missing in the database.

        Raises:
            TrackingError: The database of a moved home cannot be rewritten.
        """
        _set_quiet_defaults()
        from mlflow.tracking import MlflowClient

        with _first_client:
            self.settle()
            return MlflowClient(tracking_uri=self.uri)

    @cached_property
    def experiment_id(self) -> str:
        """The experiment, created when there is none.

        Raises:
            TrackingError: Somebody deleted it.
        """
        from mlflow.exceptions import MlflowException

        experiment = self.client.get_experiment_by_name(EXPERIMENT)
        if experiment is None:
            try:
                place = str(self.artifacts) if self.keeps_artifacts else None
                return self.client.create_experiment(EXPERIMENT, artifact_location=place)
            except MlflowException as error:
                if error.error_code != "RESOURCE_ALREADY_EXISTS":
                    raise
                experiment = self.client.get_experiment_by_name(EXPERIMENT)  # another process was faster
                assert experiment is not None
        if experiment.lifecycle_stage != "active":
            raise TrackingError(
                f"MLflow's experiment {EXPERIMENT!r} (id {experiment.experiment_id}) is deleted. Bring it back: "
                f"MLFLOW_TRACKING_URI={self.in_shell} mlflow experiments restore "
                f"--experiment-id {experiment.experiment_id}"
            )
        return experiment.experiment_id


def _set_quiet_defaults() -> None:
    """No telemetry, no URLs on stdout, no lines about migrations and waiting; whoever set these variables keeps what they said."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    logging.getLogger("alembic").setLevel(logging.WARNING)
