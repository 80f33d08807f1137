"""What MLflow is told of a run, and the registry that says which model serves. The only door to MLflow outside deployments/.

``Tracking(home)`` writes runs, ``Registry(home)`` models. Importing this package costs nothing: ``import mlflow`` takes one to
two seconds and happens at the first call that needs it. Everything names its run: MLflow's active run is thread-local, and a
task may run in a thread or a process of its own.
"""

from storage.tracking.connection import EXPERIMENT, TrackingError
from storage.tracking.metrics import MetricBuffer
from storage.tracking.model_names import MODEL_NAME
from storage.tracking.registry import Registry
from storage.tracking.runs import Tracking
from storage.tracking.versions import Champion, ModelVersion

__all__ = ["EXPERIMENT", "MODEL_NAME", "Champion", "MetricBuffer", "ModelVersion", "Registry", "Tracking", "TrackingError"]
