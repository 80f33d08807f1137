"""One MLflow run a flow run: parameters, metrics over steps, feeds as datasets, files, and the way back to Prefect.

A killed process leaves its run RUNNING, and a retry has the same flow run id: so a run is found by its tag
``prefect.flow_run_id`` and resumed, never opened twice; ``close_orphans`` ends what nobody will resume, and the home's next run
(``close_silent``) what died together with whoever should have closed it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from storage.addresses import without_secrets
from storage.identity import make_home_id
from storage.tracking.connection import Connection
from storage.tracking.metrics import BATCH, MetricBuffer, Point, flatten_params, flatten_scores, metric_name
from storage.tracking.model_names import is_own
from storage.tracking.versions import HOME

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

FLOW_RUN_ID = "prefect.flow_run_id"
FLOW_RUN_URL = "prefect.flow_run_url"
PARAMS_IN_BATCH = 100  # MLflow's bound for parameters and for tags
DIGEST_LENGTH = 36  # MLflow's bound for a dataset's digest
TAG_LENGTH = 8000
FIGURES = "at_a_glance"  # MLflow's page has a section a prefix, by the alphabet; names without one come last
VIEW = "workflowType=machine_learning"  # without it MLflow's page speaks of traces and chats, not of metrics and models
T = TypeVar("T")


class Tracking:
    """Runs of GuideSpace in MLflow.

    Args:
        home: Holds mlflow.db and mlflow/ where MLFLOW_TRACKING_URI names no server. See Connection about homes that move.
    """

    def __init__(self, home: Path | str) -> None:
        self.connection = Connection(home)

    @property
    def client(self) -> MlflowClient:
        """MLflow's own client."""
        return self.connection.client

    # -- beginning and end -------------------------------------------------------------------------------------------

    def start_run(self, flow_run_id: str, name: str, tags: Mapping[str, str] | None = None, params: object = None) -> str:
        """Opens the run of a flow run, or resumes it.

        Args:
            flow_run_id: Prefect's; what a run is found by.
            name: Shown for a new run.
            tags: Set on new and resumed runs; ``prefect.flow_run_url`` also becomes a link in the run's description.
            params: Nested settings (mapping or dataclass). A resumed run keeps the value of a parameter it already has.

        Returns:
            MLflow's run id.
        """
        found = self._runs_of(flow_run_id)
        if found:
            run = found[0]
            self.client.update_run(run.info.run_id, status="RUNNING")
        else:
            about = {
                FLOW_RUN_ID: flow_run_id,
                HOME: make_home_id(self.connection.home),
                "mlflow.source.name": "guidespace",
                "mlflow.source.type": "JOB",
            }
            run = self.client.create_run(self.connection.experiment_id, run_name=name, tags=about)
        run_id = run.info.run_id
        self.set_tags(run_id, tags or {})
        self._log_params(run_id, {key: value for key, value in flatten_params(params or {}).items() if key not in run.data.params})
        return run_id

    def end_run(self, run_id: str, status: str = "FINISHED") -> None:
        """Ends a run: FINISHED, FAILED or KILLED.

        Raises:
            ValueError: Another status.
        """
        if status not in ("FINISHED", "FAILED", "KILLED"):
            raise ValueError(f"a run ends FINISHED, FAILED or KILLED, not {status!r}")
        self.client.set_terminated(run_id, status)

    def close_orphans(self, flow_run_id: str, status: str = "KILLED") -> list[str]:
        """Ends the runs of a flow run that died without ending them; returns their ids."""
        orphans = [run.info.run_id for run in self._runs_of(flow_run_id) if run.info.status == "RUNNING"]
        for run_id in orphans:
            self.end_run(run_id, status)
        return orphans

    def close_silent(self, own: str) -> list[str]:
        """Ends the runs of this home that MLflow still shows as RUNNING; returns their ids.

        For the writer of the home: while it holds the lock (Workspace.writing) no other run of this home can be
        under way. On a server, runs of other homes are told by the tag ``guidespace.home``; runs without it are
        left alone there.

        Args:
            own: Run of the writer, which stays.
        """
        ours = f" AND tags.`{HOME}` = '{make_home_id(self.connection.home)}'"
        running = "attributes.status = 'RUNNING'" + ("" if is_own(self.connection) else ours)
        found = self.client.search_runs([self.connection.experiment_id], running)
        silent = [run.info.run_id for run in found if FLOW_RUN_ID in run.data.tags and run.info.run_id != own]
        for run_id in silent:
            self.end_run(run_id, "KILLED")
        return silent

    def where(self, run_id: str, artifact: str = "") -> str:
        """Where a person finds the run, or one of its artifacts: its page, or the command that shows it."""
        page = f"#/experiments/{self.connection.experiment_id}/runs/{run_id}{f'/artifacts/{artifact}' if artifact else ''}?{VIEW}"
        uri = self.connection.uri
        if uri.startswith("http"):
            return f"{without_secrets(uri).rstrip('/')}/{page}"
        return f"mlflow ui --backend-store-uri {self.connection.in_shell}   then http://127.0.0.1:5000/{page}"

    # -- what a run holds --------------------------------------------------------------------------------------------

    def set_tags(self, run_id: str, tags: Mapping[str, object]) -> None:
        """Sets tags; a flow run's address becomes a link in the run's description too."""
        from mlflow.entities import RunTag

        texts = {key: str(value)[:TAG_LENGTH] for key, value in tags.items()}
        if texts.get(FLOW_RUN_URL):
            texts["mlflow.note.content"] = f"[Flow run in Prefect]({texts[FLOW_RUN_URL]})"
        for batch in _batches(texts.items(), PARAMS_IN_BATCH):
            self.client.log_batch(run_id, tags=[RunTag(key, value) for key, value in batch])

    def log_progress(self, run_id: str, step: int, metrics: Mapping[str, float]) -> None:
        """Logs the metrics of one step at once; for many steps use ``buffer``."""
        with self.buffer(run_id) as buffer:
            buffer.log(step, metrics)

    def buffer(self, run_id: str, seconds: float = 2.0) -> MetricBuffer:
        """A buffer for metrics over steps, to be used in a ``with``."""
        return MetricBuffer(lambda points: self._log_points(run_id, points), seconds)

    def log_scores(self, run_id: str, scores: Mapping[str, Any]) -> dict[str, float]:
        """Logs the scores document as metrics, without its intervals (see flatten_scores); returns them."""
        metrics = flatten_scores(scores)
        self.log_progress(run_id, 0, metrics)
        return metrics

    def log_feeds(self, run_id: str, feeds: Iterable[Mapping[str, Any]]) -> None:
        """Logs feeds as dataset inputs, context "training", so that a model leads back to what it read.

        MLflow's digest holds 36 characters of ours; the whole one is a tag of the input. Secrets are
        left out.

        Args:
            feeds: Each with source and content_digest; further whole numbers (seen, stored …) become the dataset's profile.
        """
        from mlflow.entities import Dataset, DatasetInput, InputTag

        inputs = []
        for feed in feeds:
            source = str(feed["source"])
            source = without_secrets(source) if "://" in source else source
            digest = str(feed["content_digest"])
            counts = {key: value for key, value in feed.items() if isinstance(value, int)}
            kind, place = ("http", {"url": source}) if source.startswith(("http://", "https://")) else ("local", {"uri": source})
            dataset = Dataset(Path(source).name[-200:] or source[-200:], digest[:DIGEST_LENGTH], kind, json.dumps(place), profile=json.dumps(counts))
            inputs.append(DatasetInput(dataset, [InputTag("mlflow.data.context", "training"), InputTag("guidespace.content_digest", digest)]))
        for batch in _batches(inputs, BATCH):
            self.client.log_inputs(run_id, list(batch))

    def log_snapshot(
        self, run_id: str, digest: str, folder: Path, counts: Mapping[str, int]
    ) -> tuple[str, str]:
        """Logs the guide that the feeds came to as a dataset input, context "evaluation".

        Returns:
            Its name and digest, for ``log_figures``.
        """
        from mlflow.entities import Dataset, DatasetInput, InputTag

        dataset = Dataset(
            "guide",
            digest[:DIGEST_LENGTH],
            "local",
            json.dumps({"uri": str(folder)}),
            profile=json.dumps(dict(counts)),
        )
        self.client.log_inputs(
            run_id,
            [
                DatasetInput(
                    dataset,
                    [
                        InputTag("mlflow.data.context", "evaluation"),
                        InputTag("guidespace.content_digest", digest),
                    ],
                )
            ],
        )
        return dataset.name, dataset.digest

    def log_figures(
        self, run_id: str, figures: Mapping[str, float], model_id: str, dataset: tuple[str, str]
    ) -> None:
        """Logs headline figures, ``at_a_glance/NAME``: of the run, and of its logged model on a dataset (name and digest).

        Args:
            run_id: The run.
            figures: Name to value.
            model_id: See ``Registry.logged_model``; empty links them to no model.
            dataset: As ``log_snapshot`` gives it.
        """
        from mlflow.entities import Metric

        now = time.time_ns() // 1_000_000
        metrics = [
            Metric(metric_name(FIGURES, name), value, now, 0, model_id or None, *dataset)
            for name, value in figures.items()
        ]
        self.client.log_batch(run_id, metrics=metrics)

    def log_folder(self, run_id: str, folder: Path, artifact_path: str | None = None) -> None:
        """Copies a folder's content to the run's artifacts."""
        self.client.log_artifacts(run_id, str(folder), artifact_path)

    def log_file(self, run_id: str, file: Path, artifact_path: str | None = None) -> None:
        """Copies one file (map, plot, table) to the run's artifacts."""
        self.client.log_artifact(run_id, str(file), artifact_path)

    def log_text(self, run_id: str, text: str, name: str) -> None:
        """Writes a text as a file among the run's artifacts; MLflow's page shows .csv as a table."""
        self.client.log_text(run_id, text, name)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _runs_of(self, flow_run_id: str) -> list[Any]:
        """The runs of a flow run, newest first."""
        if "'" in flow_run_id:
            raise ValueError(f"a flow run id holds no quote: {flow_run_id!r}")
        return list(self.client.search_runs([self.connection.experiment_id], f"tags.`{FLOW_RUN_ID}` = '{flow_run_id}'", order_by=["attributes.start_time DESC"]))

    def _log_params(self, run_id: str, params: Mapping[str, str]) -> None:
        from mlflow.entities import Param

        for batch in _batches(params.items(), PARAMS_IN_BATCH):
            self.client.log_batch(run_id, params=[Param(key, value) for key, value in batch])

    def _log_points(self, run_id: str, points: Sequence[Point]) -> None:
        from mlflow.entities import Metric

        self.client.log_batch(run_id, metrics=[Metric(name, value, at, step) for name, value, at, step in points])


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
