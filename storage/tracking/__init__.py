"""MLflow runs and the model registry; the only uses of MLflow outside deployments/.

``Tracking(home)`` writes runs, ``Registry(home)`` models. ``import mlflow`` takes one to two seconds, so the
first call that needs it imports it. Each call has a run id as an argument, because MLflow's active run is
thread-local and tasks run in threads or processes.
"""

from storage.tracking.champion import Champion
from storage.tracking.connection import EXPERIMENT, MODEL_NAME, TrackingError
from storage.tracking.registry import ModelVersion, Registry
from storage.tracking.runs import Tracking

__all__ = ["EXPERIMENT", "MODEL_NAME", "Champion", "ModelVersion", "Registry", "Tracking", "TrackingError"]
