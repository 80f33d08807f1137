"""Runs in MLflow, and the registry that says which model serves; all of MLflow outside deployments/.

``Tracking(home)`` writes runs, ``Registry(home)`` models. ``import mlflow`` takes one to two seconds and
happens at the first call that needs it. Every call names its run: MLflow's active run is thread-local, and a
task may run in a thread or a process of its own.
"""

from storage.tracking.connection import EXPERIMENT, MODEL_NAME, TrackingError
from storage.tracking.registry import Champion, ModelVersion, Registry
from storage.tracking.runs import Tracking

__all__ = ["EXPERIMENT", "MODEL_NAME", "Champion", "ModelVersion", "Registry", "Tracking", "TrackingError"]
