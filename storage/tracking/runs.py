"""One MLflow run per flow run: parameters, metrics, datasets, artifacts, and links to Prefect.

A killed process leaves its run RUNNING, and a retry has the same flow run id. A retry therefore looks up the
run by its tag ``prefect.flow_run_id`` and resumes it. ``close_orphans`` ends the runs of a crashed flow run,
and ``close_stale_runs`` of the next run ends runs that crashed together with Prefect.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from storage.addresses import without_secrets
from storage.home.identity import make_home_id
from storage.stages import ROOT
from storage.tracking.connection import PAGES, Connection
from storage.tracking.registry import HOME

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput, Run

FLOW_RUN_ID = "prefect.flow_run_id"
FLOW_RUN_URL = "prefect.flow_run_url"
NAME_LENGTH = 250  # MLflow's limit for the name of a metric
PARAM_LENGTH = 6000  # MLflow's limit for a parameter
NOTE_LENGTH = 8000  # MLflow's limit for a tag
METRICS_IN_BATCH = 1000  # MLflow's limit; 0.13 s per call, 17 s for 1,000 calls with one metric each
PARAMS_IN_BATCH = 100  # MLflow's limit for parameters and tags
DIGEST_LENGTH = 36  # MLflow's limit for a dataset's digest
FIGURES = "at_a_glance"  # prefix of headline metrics, which MLflow's page therefore shows first
Status = Literal["FINISHED", "FAILED", "KILLED"]
VIEW = "workflowType=machine_learning"  # otherwise MLflow's page shows traces instead of metrics


class Tracking(Connection):
    """GuideSpace's runs in MLflow."""

    def start_run(
        self, flow_run_id: str, name: str, tags: Mapping[str, str] | None = None, params: object = None
    ) -> str:
        """Creates or resumes the run of a Prefect flow run; returns MLflow's run id.

        A resumed run keeps its name and its existing parameters. ``params`` are nested settings.
        """
        from mlflow.entities import Param
        from mlflow.utils.git_utils import get_git_commit

        if runs := self._find_runs(flow_run_id):
            run = runs[0]
            self.client.update_run(run.info.run_id, status="RUNNING")
        else:
            run_tags = {FLOW_RUN_ID: flow_run_id, HOME: make_home_id(self.home)}
            run_tags |= {"mlflow.source.name": "guidespace", "mlflow.source.type": "JOB"}
            if commit := get_git_commit(str(ROOT)):
                run_tags["mlflow.source.git.commit"] = commit
            run = self.client.create_run(self.experiment_id, run_name=name, tags=run_tags)
        run_id = run.info.run_id
        self.set_tags(run_id, tags or {})
        logged = run.data.params
        new_params = [Param(*item) for item in flatten_params(params or {}).items() if item[0] not in logged]
        self._log(run_id, "params", new_params, PARAMS_IN_BATCH)
        return run_id

    def end_run(self, run_id: str, status: Status = "FINISHED") -> None:
        """Ends a run."""
        self.client.set_terminated(run_id, status)

    def close_orphans(self, flow_run_id: str) -> list[str]:
        """Ends the running runs of a crashed flow run; returns their ids."""
        return self._close(run for run in self._find_runs(flow_run_id) if run.info.status == "RUNNING")

    def close_stale_runs(self, current: str) -> list[str]:
        """Ends the runs of this home with status RUNNING except the ``current`` one; returns their ids.

        Requires the writer's lock (Workspace.writing), so that no other run can be active. Homes within this
        home use the same database; their runs have another id in the tag ``guidespace.home`` and may be
        active.
        """
        running = f"attributes.status = 'RUNNING' AND tags.`{HOME}` = '{make_home_id(self.home)}'"
        runs = self.client.search_runs([self.experiment_id], running)
        return self._close(run for run in runs if FLOW_RUN_ID in run.data.tags and run.info.run_id != current)

    def _close(self, runs: Iterable[Run]) -> list[str]:
        closed = [run.info.run_id for run in runs]
        for run_id in closed:
            self.end_run(run_id, "KILLED")
        return closed

    def where(self, run_id: str, artifact: str = "") -> str:
        """Returns the URL of a run or one of its artifacts; without a server, the command that shows it."""
        uri, path = os.environ.get(PAGES) or self.uri, f"/artifacts/{artifact}" if artifact else ""
        page = f"#/experiments/{self.experiment_id}/runs/{run_id}{path}?{VIEW}"
        if uri.startswith("http"):
            return f"{without_secrets(uri).rstrip('/')}/{page}"
        return f"mlflow ui --backend-store-uri {self.shell_uri}   then http://127.0.0.1:5000/{page}"

    def set_tags(self, run_id: str, tags: Mapping[str, object]) -> None:
        """Sets tags; ``prefect.flow_run_url`` is also added to the description as a link."""
        from mlflow.entities import RunTag

        if url := tags.get(FLOW_RUN_URL):
            tags = {**tags, "mlflow.note.content": f"[Flow run in Prefect]({url})"}
        self._log(run_id, "tags", [RunTag(key, str(value)) for key, value in tags.items()], PARAMS_IN_BATCH)

    def describe(self, run_id: str, text: str) -> None:
        """Sets the description (Markdown) of a run, below the link to Prefect; truncates a long one."""
        link = self.client.get_run(run_id).data.tags.get(FLOW_RUN_URL)
        note = f"[Flow run in Prefect]({link})\n\n{text}" if link else text
        if len(note) > NOTE_LENGTH:
            note = note[: NOTE_LENGTH - 100].rpartition("\n")[0] + "\n\n… the rest is in report.md"
        self.client.set_tag(run_id, "mlflow.note.content", note)

    @contextmanager
    def system_metrics(self, run_id: str) -> Iterator[None]:
        """Logs the load of CPU, memory, disk, network and GPUs every ten seconds during the block."""
        from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

        monitor = SystemMetricsMonitor(run_id, resume_logging=True, tracking_uri=self.uri)
        monitor.start()
        try:
            yield
        finally:
            monitor.finish()

    def log_progress(self, run_id: str, step: int, metrics: Mapping[str, float]) -> None:
        """Logs the metrics of one step."""
        self.log_steps(run_id, [(step, metrics)])

    def log_steps(self, run_id: str, steps: Iterable[tuple[int, Mapping[str, float]]]) -> None:
        """Logs the metrics of many steps in batches."""
        from mlflow.entities import Metric

        now = time.time_ns() // 1_000_000
        points = ((step, *point) for step, metrics in steps for point in metrics.items())
        logged = [Metric(metric_name(name), float(value), now, step) for step, name, value in points]
        self._log(run_id, "metrics", logged, METRICS_IN_BATCH)

    def log_scores(self, run_id: str, scores: Mapping[str, Any]) -> None:
        """Logs the scores document as metrics (see flatten_scores)."""
        self.log_progress(run_id, 0, flatten_scores(shorten_kinds(scores)))

    def log_feeds(self, run_id: str, feeds: Iterable[Mapping[str, Any]]) -> None:
        """Logs feeds as dataset inputs without secrets; their integer fields become the profile."""
        inputs = []
        for feed in feeds:
            source = without_secrets(feed["source"]) if "://" in feed["source"] else feed["source"]
            counts = {key: value for key, value in feed.items() if isinstance(value, int)}
            name = Path(source).name[-200:] or source[-200:]
            inputs.append(_dataset("training", name, feed["content_digest"], source, counts))
        for begin in range(0, len(inputs), METRICS_IN_BATCH):
            self.client.log_inputs(run_id, inputs[begin : begin + METRICS_IN_BATCH])

    def log_snapshot(
        self, run_id: str, digest: str, folder: Path, counts: Mapping[str, int]
    ) -> tuple[str, str]:
        """Logs the guide as a dataset input for evaluation; returns its name and digest."""
        dataset_input = _dataset("evaluation", "guide", digest, str(folder), counts)
        self.client.log_inputs(run_id, [dataset_input])
        return dataset_input.dataset.name, dataset_input.dataset.digest

    def log_figures(
        self, run_id: str, figures: Mapping[str, float], model_id: str, dataset: tuple[str, str]
    ) -> None:
        """Logs headline metrics of a run and its logged model (or "") for the dataset of ``log_snapshot``."""
        from mlflow.entities import Metric

        now, model = time.time_ns() // 1_000_000, model_id or None
        named = [(metric_name(FIGURES, name), value) for name, value in figures.items()]
        metrics = [Metric(name, value, now, 0, model, *dataset) for name, value in named]
        self._log(run_id, "metrics", metrics, METRICS_IN_BATCH)

    def log_folder(self, run_id: str, folder: Path, artifact_path: str | None = None) -> None:
        """Uploads the files of a folder as artifacts of the run."""
        self.client.log_artifacts(run_id, str(folder), artifact_path)

    def log_file(self, run_id: str, file: Path, artifact_path: str | None = None) -> None:
        """Uploads a file as an artifact of the run."""
        self.client.log_artifact(run_id, str(file), artifact_path)

    def log_text(self, run_id: str, text: str, name: str) -> None:
        """Writes a text file as an artifact of the run; MLflow's page shows .csv files as tables."""
        self.client.log_text(run_id, text, name)

    def log_table(self, run_id: str, columns: Mapping[str, Sequence[object]], name: str) -> None:
        """Writes or replaces a table, which MLflow's page shows under *Evaluation*.

        MLflow's ``log_table`` would append to the table of a resumed run.
        """
        rows = [list(row) for row in zip(*columns.values(), strict=True)]
        text = json.dumps({"columns": [*columns], "data": rows}, ensure_ascii=False)
        self.client.log_text(run_id, text, name)
        self.set_tags(run_id, {"mlflow.loggedArtifacts": json.dumps([{"path": name, "type": "table"}])})

    def _find_runs(self, flow_run_id: str) -> list[Run]:
        query, newest_first = f"tags.`{FLOW_RUN_ID}` = '{flow_run_id}'", ["attributes.start_time DESC"]
        return list(self.client.search_runs([self.experiment_id], query, order_by=newest_first))

    def _log(self, run_id: str, kind: str, items: Sequence[Any], batch: int) -> None:
        for begin in range(0, len(items), batch):
            entities: Any = {kind: items[begin : begin + batch]}
            self.client.log_batch(run_id, **entities)


def _dataset(context: str, name: str, digest: str, source: str, counts: Mapping[str, int]) -> DatasetInput:
    """Creates a dataset input; MLflow truncates the digest, so a tag has the full one."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    is_remote = source.startswith(("http://", "https://"))
    kind, location = ("http", {"url": source}) if is_remote else ("local", {"uri": source})
    tags = {"mlflow.data.context": context, "guidespace.content_digest": digest}
    profile = json.dumps(dict(counts))
    dataset = Dataset(name, digest[:DIGEST_LENGTH], kind, json.dumps(location), profile=profile)
    return DatasetInput(dataset, [InputTag(*item) for item in tags.items()])


def metric_name(*parts: object) -> str:
    """Joins parts to a valid MLflow metric name; MLflow shows ``a/b`` as chart b in section a."""
    text = "/".join(map(str, parts)).split("/")
    pieces = [re.sub(r"[^\w.\- :]", "_", piece).strip() for piece in text]
    # MLflow interprets names as paths, so "." and ".." are replaced
    pieces = [piece if piece.strip(".") else piece.replace(".", "_") for piece in pieces if piece]
    return "/".join(pieces)[:NAME_LENGTH].rstrip("/") or "_"


def shorten_kinds(scores: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the scores with three figures per kind of programme, on all titles; MLflow would show all."""
    names = "precision", "recall", "average_precision"
    kinds = {
        kind: {name: sets["all"][name] for name in names} for kind, sets in scores.get("kinds", {}).items()
    }
    return {**scores, "kinds": kinds}


def flatten_scores(scores: Mapping[str, Any], *path: str) -> dict[str, float]:
    """Flattens the scores document to metrics such as ``unseen_title/title_only/knn/accuracy``.

    Booleans become 0 and 1; strings, nulls, non-finite values and lists (intervals) are omitted.
    """
    flat: dict[str, float] = {}
    for name, value in scores.items():
        if isinstance(value, Mapping):
            flat |= flatten_scores(value, *(() if name == "protocols" and not path else (*path, name)))
        elif isinstance(value, bool | int | float) and math.isfinite(value):
            flat[metric_name(*path, name)] = float(value)
    return flat


def flatten_params(params: object, prefix: str = "") -> dict[str, str]:
    """Flattens nested settings to ``train.optimizer.name`` → text; lists as JSON; truncates values."""
    if dataclasses.is_dataclass(params) and not isinstance(params, type):
        params = dataclasses.asdict(params)
    if isinstance(params, Mapping):
        parts = (flatten_params(value, f"{prefix}.{name}".lstrip(".")) for name, value in params.items())
        return {name: text for part in parts for name, text in part.items()}
    is_list = isinstance(params, list | tuple)
    text = json.dumps(params, ensure_ascii=False, default=str) if is_list else str(params)
    if len(text) > PARAM_LENGTH:
        ending = f"… ({len(text)} characters)"
        text = text[: PARAM_LENGTH - len(ending)] + ending
    return {metric_name(prefix): text}
