"""Prefect tasks of the stage ingest, which is idempotent (unchanged feeds are skipped) and not cached."""

import datetime
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from prefect import get_run_logger, task
from prefect.artifacts import create_progress_artifact, create_table_artifact, update_progress_artifact
from prefect.blocks.system import Secret
from prefect.context import TaskRunContext
from prefect.events import emit_event
from prefect.exceptions import MissingContextError

from storage.artifacts import Guide, Progress
from storage.home.readings import read_readings
from storage.home.workspace import Workspace
from storage.tracking import Tracking
from tasks.ingest.checks import check_guide
from tasks.ingest.publish import read_and_publish
from tasks.ingest.results import Failure, FeedResult
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.dates import DatedFeed
from tasks.ingest.sources.feeds import SECRET, NamedFeed

TABLE_ROWS = 500  # maximum rows of the table artifact
SILENT = "guidespace.feed.silent"  # event: a feed failed or has anomalies (deployments/automations.yaml)


def _is_transient(task: object, run: object, state: Any) -> bool:
    """Returns whether a retry can help: the disk or the network failed, not the feed."""
    return isinstance(state.result(raise_on_failure=False), OSError)


_RETRY: dict[str, Any] = {"retries": 2, "retry_delay_seconds": 5, "retry_jitter_factor": 0.5}


@task(name="ingest", task_run_name="ingest", persist_result=False, retry_condition_fn=_is_transient, **_RETRY)
def ingest(
    home: str,
    feeds: Sequence[str | DatedFeed],
    settings: IngestSettings,
    as_of: datetime.datetime | None = None,
) -> Guide:
    """Reads feeds (and Secret blocks) and publishes the Guide; see ``read_and_publish``."""
    return read_and_publish(Workspace(home), [opened(feed) for feed in feeds], settings, as_of, Reporter())


def opened(feed: str | DatedFeed) -> str | NamedFeed:
    """Opens a Secret block; its name becomes the source. Any other feed is returned unchanged.

    If there is no such block, the result has a ``problem``, which affects no other feed.
    """
    if isinstance(feed, DatedFeed) or not feed.startswith(SECRET):
        return feed
    try:
        secret = Secret.load(feed.removeprefix(SECRET))
    except ValueError:
        problem = "Prefect has no Secret block of that name; create one in the UI under Blocks"
        return NamedFeed(location="", source=feed, problem=problem)
    assert isinstance(secret, Secret)
    return NamedFeed(location=str(secret.get()).strip(), source=feed)


@task(name="check", task_run_name="check", persist_result=False)
def check(home: str, guide: Guide, run: str = "") -> list[str]:
    """Returns the anomalies of readings and Guide, and creates a table artifact with anomalous days first.

    Args:
        home: Folder of the home.
        guide: Published Guide.
        run: MLflow run to which metrics are logged; empty logs none.
    """
    workspace = Workspace(home)
    checked = check_guide(workspace.folder(guide), read_readings(workspace.home))
    for anomaly in checked.anomalies[:20]:
        logger().warning("%s", anomaly)
    if TaskRunContext.get():
        rows = [dict(row) for row in (*checked.readings, *checked.days)]
        rows.sort(key=lambda row: (not row["anomalies"], row["source"], row["day"]))
        summary = f"{len(checked.days)} days of feeds, {len(checked.anomalies)} anomalies"
        create_table_artifact(table=rows[:TABLE_ROWS], key="guide-checks", description=summary)  # pyright: ignore[reportUnusedCoroutine]
        for row in checked.readings:
            feed = {
                "prefect.resource.id": f"guidespace.feed.{row['source']}",
                "prefect.resource.name": Path(row["source"]).name,
            }
            emit_event(SILENT, resource=feed, payload={"what": row["anomalies"]})
    if run:
        Tracking(workspace.home).log_progress(run, 0, checked.metrics)
    return list(checked.anomalies)


def logger() -> Any:
    """Returns the logger of the run, or a standard logger outside a run."""
    try:
        return get_run_logger()
    except MissingContextError:
        return logging.getLogger("guidespace.ingest")


class Reporter:
    """Forwards events to the log and the progress bar of the run, or to standard logging outside a run."""

    def __init__(self) -> None:
        self.logger = logger()
        self.bar: UUID | None = None
        if TaskRunContext.get():
            self.bar = create_progress_artifact(progress=0.0, key="ingest", description="Feeds read")  # pyright: ignore[reportAttributeAccessIssue, reportAssignmentType]

    def __call__(self, event: Progress | FeedResult | Failure) -> None:
        """Forwards an event; the task ``check`` reports anomalies."""
        if not isinstance(event, Progress):
            self.logger.log(logging.ERROR if isinstance(event, Failure) else logging.INFO, "%s", event)
            return
        if event.step < event.total:
            self.logger.info("%s", event.note)
        if self.bar is not None:
            update_progress_artifact(self.bar, progress=event.percent)  # pyright: ignore[reportUnusedCoroutine]
