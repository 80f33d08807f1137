"""Writes one MLflow run per Prefect flow run: parameters, metrics, datasets, artifacts, and links to Prefect.

If a process is killed, its MLflow run keeps the status RUNNING. A retry of the flow run has the same flow run
id, so it finds the MLflow run by the tag ``prefect.flow_run_id`` and resumes it. ``close_orphans`` ends the
MLflow runs of a crashed flow run. If Prefect crashed, too, the next run ends them by ``close_stale_runs``.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from storage.addresses import without_secrets
from storage.home.identity import make_home_id
from storage.stages import ROOT
from storage.tracking.connection import PAGES_VARIABLE, MlflowConnection
from storage.tracking.flattening import flatten_params, flatten_scores, metric_name, shorten_kind_scores
from storage.tracking.tags import FLOW_RUN_ID_TAG, FLOW_RUN_URL_TAG, HOME_TAG

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput, Run

NOTE_LENGTH = 8000  # MLflow's limit for a tag
METRICS_IN_BATCH = 1000  # MLflow's limit per call; a full call takes 0.13 s, a call with one metric 0.017 s
PARAMS_IN_BATCH = 100  # MLflow's limit for parameters and tags per call
DIGEST_LENGTH = 36  # MLflow's limit for a dataset's digest
FIGURES_PREFIX = "at_a_glance"  # prefix of the most important metrics, alphabetically first on MLflow's page
Status = Literal["FINISHED", "FAILED", "KILLED"]
VIEW_PARAMETER = "workflowType=machine_learning"  # in URLs; without it, MLflow's page shows traces


class Tracking:
    """Creates MLflow runs of a home and logs to them."""

    def __init__(self, home: Path | str) -> None:
        self.mlflow = MlflowConnection(home)

    def start_run(
        self, flow_run_id: str, name: str, tags: Mapping[str, str] | None = None, params: object = None
    ) -> str:
        """Creates or resumes the MLflow run of a Prefect flow run; returns the id of the MLflow run.

        Args:
            flow_run_id: Id of the Prefect flow run.
            name: Name of a new MLflow run; a resumed run keeps its name.
            tags: Tags to set.
            params: Nested settings to log as parameters; a resumed run keeps its existing parameters.
        """
        from mlflow.entities import Param
        from mlflow.utils.git_utils import get_git_commit

        if runs := self._find_runs(flow_run_id):
            run = runs[0]
            self.mlflow.client.update_run(run.info.run_id, status="RUNNING")
        else:
            run_tags = {FLOW_RUN_ID_TAG: flow_run_id, HOME_TAG: make_home_id(self.mlflow.home)}
            run_tags |= {"mlflow.source.name": "guidespace", "mlflow.source.type": "JOB"}
            if commit := get_git_commit(str(ROOT)):
                run_tags["mlflow.source.git.commit"] = commit
            run = self.mlflow.client.create_run(self.mlflow.experiment_id, run_name=name, tags=run_tags)
        run_id = run.info.run_id
        self.set_tags(run_id, tags or {})
        existing_params = run.data.params
        new_params = [
            Param(*item) for item in flatten_params(params or {}).items() if item[0] not in existing_params
        ]
        self._log_batches(run_id, "params", new_params, PARAMS_IN_BATCH)
        return run_id

    def end_run(self, run_id: str, status: Status = "FINISHED") -> None:
        """Sets the final status of an MLflow run."""
        self.mlflow.client.set_terminated(run_id, status)

    def close_orphans(self, flow_run_id: str) -> list[str]:
        """Ends the MLflow runs of a crashed Prefect flow run that are still RUNNING; returns their ids."""
        return self._end_all(run for run in self._find_runs(flow_run_id) if run.info.status == "RUNNING")

    def close_stale_runs(self, current: str) -> list[str]:
        """Ends the RUNNING MLflow runs of this home except the run ``current``; returns their ids.

        The caller must hold the lock of the home (Workspace.writing), so that no other run of this home is
        active. Runs of other homes in the same database may be active, and are not ended.
        """
        home_id = make_home_id(self.mlflow.home)
        query = f"attributes.status = 'RUNNING' AND tags.`{HOME_TAG}` = '{home_id}'"
        runs = self.mlflow.client.search_runs([self.mlflow.experiment_id], query)
        return self._end_all(
            run for run in runs if FLOW_RUN_ID_TAG in run.data.tags and run.info.run_id != current
        )

    def _end_all(self, runs: Iterable[Run]) -> list[str]:
        """Ends MLflow runs with the status KILLED; returns their ids."""
        run_ids = [run.info.run_id for run in runs]
        for run_id in run_ids:
            self.end_run(run_id, "KILLED")
        return run_ids

    def run_location(self, run_id: str, artifact: str = "") -> str:
        """Returns text that tells a user where to see a run or its artifact.

        The text is a URL or, if there is no server, a command that starts a server, and a URL.
        """
        uri = os.environ.get(PAGES_VARIABLE) or self.mlflow.uri
        path = f"/artifacts/{artifact}" if artifact else ""
        page = f"#/experiments/{self.mlflow.experiment_id}/runs/{run_id}{path}?{VIEW_PARAMETER}"
        if uri.startswith("http"):
            return f"{without_secrets(uri).rstrip('/')}/{page}"
        return f"mlflow ui --backend-store-uri {self.mlflow.shell_uri}   then http://127.0.0.1:5000/{page}"

    def set_tags(self, run_id: str, tags: Mapping[str, object]) -> None:
        """Sets tags of a run; the URL in ``prefect.flow_run_url`` also becomes a link in its description."""
        from mlflow.entities import RunTag

        if url := tags.get(FLOW_RUN_URL_TAG):
            tags = {**tags, "mlflow.note.content": f"[Flow run in Prefect]({url})"}
        self._log_batches(
            run_id, "tags", [RunTag(key, str(value)) for key, value in tags.items()], PARAMS_IN_BATCH
        )

    def describe(self, run_id: str, text: str) -> None:
        """Sets the description (Markdown) of a run: a link to its Prefect run, if it has one, and ``text``.

        A description that is longer than MLflow's limit is truncated.
        """
        link = self.mlflow.client.get_run(run_id).data.tags.get(FLOW_RUN_URL_TAG)
        note = f"[Flow run in Prefect]({link})\n\n{text}" if link else text
        if len(note) > NOTE_LENGTH:
            note = note[: NOTE_LENGTH - 100].rpartition("\n")[0] + "\n\n… the rest is in report.md"
        self.mlflow.client.set_tag(run_id, "mlflow.note.content", note)

    @contextmanager
    def system_metrics(self, run_id: str) -> Iterator[None]:
        """Logs the load of CPU, memory, disk, network and GPUs every ten seconds during the block."""
        from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

        monitor = SystemMetricsMonitor(run_id, resume_logging=True, tracking_uri=self.mlflow.uri)
        monitor.start()
        try:
            yield
        finally:
            monitor.finish()

    def log_progress(self, run_id: str, step: int, metrics: Mapping[str, float]) -> None:
        """Logs the metrics of one step of a computation."""
        self.log_steps(run_id, [(step, metrics)])

    def log_steps(self, run_id: str, steps: Iterable[tuple[int, Mapping[str, float]]]) -> None:
        """Logs the metrics of many steps in few calls of MLflow; ``steps`` yields (step, metrics)."""
        from mlflow.entities import Metric

        now = time.time_ns() // 1_000_000
        points = ((step, *point) for step, metrics in steps for point in metrics.items())
        entities = [Metric(metric_name(name), float(value), now, step) for step, name, value in points]
        self._log_batches(run_id, "metrics", entities, METRICS_IN_BATCH)

    def log_scores(self, run_id: str, scores: Mapping[str, Any]) -> None:
        """Logs the nested dictionary of scores.json as metrics, named as ``flatten_scores`` describes."""
        self.log_progress(run_id, 0, flatten_scores(shorten_kind_scores(scores)))

    def log_feeds(self, run_id: str, feeds: Iterable[Mapping[str, Any]]) -> None:
        """Logs feeds as MLflow datasets, with their integer values as profile and without secrets of URLs."""
        inputs = []
        for feed in feeds:
            source = without_secrets(feed["source"]) if "://" in feed["source"] else feed["source"]
            counts = {key: value for key, value in feed.items() if isinstance(value, int)}
            name = Path(source).name[-200:] or source[-200:]
            inputs.append(_dataset("training", name, feed["content_digest"], source, counts))
        for begin in range(0, len(inputs), METRICS_IN_BATCH):
            self.mlflow.client.log_inputs(run_id, inputs[begin : begin + METRICS_IN_BATCH])

    def log_snapshot(
        self, run_id: str, digest: str, folder: Path, counts: Mapping[str, int]
    ) -> tuple[str, str]:
        """Logs the guide as the MLflow dataset for evaluation; returns the name and digest of the dataset."""
        dataset_input = _dataset("evaluation", "guide", digest, str(folder), counts)
        self.mlflow.client.log_inputs(run_id, [dataset_input])
        return dataset_input.dataset.name, dataset_input.dataset.digest

    def log_figures(
        self, run_id: str, figures: Mapping[str, float], model_id: str, dataset: tuple[str, str]
    ) -> None:
        """Logs the most important metrics of a run, linked to a model and to a dataset.

        Args:
            run_id: MLflow run.
            figures: Values of the metrics by name.
            model_id: Id of the MLflow logged model; "" for none.
            dataset: Name and digest of the dataset, as returned by ``log_snapshot``.
        """
        from mlflow.entities import Metric

        now, model = time.time_ns() // 1_000_000, model_id or None
        dataset_name, dataset_digest = dataset
        metrics = [
            Metric(metric_name(FIGURES_PREFIX, name), value, now, 0, model, dataset_name, dataset_digest)
            for name, value in figures.items()
        ]
        self._log_batches(run_id, "metrics", metrics, METRICS_IN_BATCH)

    def log_folder(self, run_id: str, folder: Path, artifact_path: str | None = None) -> None:
        """Uploads the files of a folder as artifacts of an MLflow run."""
        self.mlflow.client.log_artifacts(run_id, str(folder), artifact_path)

    def log_file(self, run_id: str, file: Path, artifact_path: str | None = None) -> None:
        """Uploads a file as an artifact of an MLflow run."""
        self.mlflow.client.log_artifact(run_id, str(file), artifact_path)

    def log_text(self, run_id: str, text: str, name: str) -> None:
        """Writes a text file as an artifact of an MLflow run; MLflow's page shows .csv files as tables."""
        self.mlflow.client.log_text(run_id, text, name)

    def log_table(self, run_id: str, columns: Mapping[str, Sequence[object]], name: str) -> None:
        """Writes or replaces a table of an MLflow run, which MLflow's page shows under *Evaluation*.

        MLflow's ``log_table`` would append rows if the run is resumed.
        """
        rows = [list(row) for row in zip(*columns.values(), strict=True)]
        text = json.dumps({"columns": [*columns], "data": rows}, ensure_ascii=False)
        self.mlflow.client.log_text(run_id, text, name)
        self.set_tags(run_id, {"mlflow.loggedArtifacts": json.dumps([{"path": name, "type": "table"}])})

    def _find_runs(self, flow_run_id: str) -> list[Run]:
        """Returns the MLflow runs of a Prefect flow run, newest first."""
        query, newest_first = f"tags.`{FLOW_RUN_ID_TAG}` = '{flow_run_id}'", ["attributes.start_time DESC"]
        return list(self.mlflow.client.search_runs([self.mlflow.experiment_id], query, order_by=newest_first))

    def _log_batches(self, run_id: str, kind: str, entities: Sequence[Any], batch_size: int) -> None:
        """Logs MLflow entities in batches; ``kind`` is "metrics", "params" or "tags"."""
        for begin in range(0, len(entities), batch_size):
            batch: Any = {kind: entities[begin : begin + batch_size]}
            self.mlflow.client.log_batch(run_id, **batch)


def _dataset(context: str, name: str, digest: str, source: str, counts: Mapping[str, int]) -> DatasetInput:
    """Creates an MLflow dataset input. A tag has the complete digest, because MLflow truncates digests."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    is_remote = source.startswith(("http://", "https://"))
    kind, location = ("http", {"url": source}) if is_remote else ("local", {"uri": source})
    tags = {"mlflow.data.context": context, "guidespace.content_digest": digest}
    profile = json.dumps(dict(counts))
    dataset = Dataset(name, digest[:DIGEST_LENGTH], kind, json.dumps(location), profile=profile)
    return DatasetInput(dataset, [InputTag(*item) for item in tags.items()])
