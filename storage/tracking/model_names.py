"""The name of a home's registered model, so that homes on one MLflow server never take each other's champion.

In the home's own database it is ``guidespace-titles``. Where MLFLOW_TRACKING_URI names a server or another database, which several
homes may share, it is ``guidespace-titles-ID`` with the home's id (storage/identity.py). The setting
``publish.registered_model`` names another one; home.json keeps it, so that whoever reads the home asks for the same model.
"""

from __future__ import annotations

from storage.identity import read_home_id, read_marker
from storage.tracking.connection import Connection

MODEL_NAME = "guidespace-titles"
CHOSEN = "registered_model"  # key in home.json


def is_own(connection: Connection) -> bool:
    """Whether the registry is the home's own database, also where MLFLOW_TRACKING_URI names that one."""
    return connection.uri == f"sqlite:///{connection.database}"


def model_name(connection: Connection, chosen: str | None) -> str:
    """Name of the registered model of a home.

    Args:
        connection: Where MLflow is.
        chosen: As the setting says; empty is the default, None is what home.json says.
    """
    name = str(read_marker(connection.home).get(CHOSEN, "")) if chosen is None else chosen
    if name or is_own(connection):
        return name or MODEL_NAME
    return f"{MODEL_NAME}-{read_home_id(connection.home) or 'new'}"
