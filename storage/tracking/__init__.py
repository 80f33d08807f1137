"""Writes runs and registers models in MLflow. Outside of deployments/, only this package uses MLflow.

``Tracking(home)`` writes runs, and ``Registry(home)`` registers models. ``import mlflow`` takes one to two
seconds, so MLflow is imported by the first call that needs it. Methods take the run id as an argument instead
of using MLflow's active run, which is local to a thread, while tasks run in several threads and processes.
"""

from storage.tracking.champion import Champion
from storage.tracking.connection import EXPERIMENT, MODEL_NAME, TrackingError
from storage.tracking.registry import ModelVersion, Registry
from storage.tracking.runs import Tracking

__all__ = ["EXPERIMENT", "MODEL_NAME", "Champion", "ModelVersion", "Registry", "Tracking", "TrackingError"]
