"""Writes runs and registers models in MLflow. Outside of deployments/, only this package uses MLflow.

``Tracking(home)`` writes runs, and ``Registry(home)`` registers models. ``import mlflow`` takes one to two
seconds, so MLflow is imported by the first call that needs it. Methods take the run id as an argument,
because MLflow's active run is thread-local and tasks run in several threads or processes.
"""

from storage.tracking.champion import Champion
from storage.tracking.connection import EXPERIMENT, MODEL_NAME, TrackingError
from storage.tracking.registry import ModelVersion, Registry
from storage.tracking.runs import Tracking

__all__ = ["EXPERIMENT", "MODEL_NAME", "Champion", "ModelVersion", "Registry", "Tracking", "TrackingError"]
