"""Defines the Prefect tasks that import feeds and check the guide.

Prefect does not cache the tasks, because unchanged feeds are skipped anyway.
"""

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
from tasks.ingest.anomalies import check_guide
from tasks.ingest.publish import read_and_publish
from tasks.ingest.results import Failure, FeedResult
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.dates import DatedFeed
from tasks.ingest.sources.feeds import SECRET_PREFIX, NamedFeed

MAX_TABLE_ROWS = 500  # maximum rows of the Prefect table artifact
# Prefect event of a feed that failed or has anomalies (deployments/automations.yaml).
FEED_EVENT = "guidespace.feed.silent"


def _is_transient(task: object, run: object, state: Any) -> bool:
    """Returns whether Prefect should retry the task, because the disk or the network caused the error."""
    return isinstance(state.result(raise_on_failure=False), OSError)


_RETRY: dict[str, Any] = {"retries": 2, "retry_delay_seconds": 5, "retry_jitter_factor": 0.5}


@task(name="ingest", task_run_name="ingest", persist_result=False, retry_condition_fn=_is_transient, **_RETRY)
def ingest(
    home: str,
    feeds: Sequence[str | DatedFeed],
    settings: IngestSettings,
    as_of: datetime.datetime | None = None,
) -> Guide:
    """Opens Secret blocks of Prefect, imports feeds, and publishes a snapshot of the catalogue as a Guide."""
    return read_and_publish(
        Workspace(home), [open_secret_block(feed) for feed in feeds], settings, as_of, Reporter()
    )


def open_secret_block(feed: str | DatedFeed) -> str | NamedFeed:
    """Reads the location of a feed ``secret:NAME`` from the Secret block NAME. Returns other feeds unchanged.

    The source (name) of the feed is ``secret:NAME``. If Prefect has no block NAME, the function returns a
    feed with a ``problem`` instead of failing, so that all other feeds are still read.
    """
    if isinstance(feed, DatedFeed) or not feed.startswith(SECRET_PREFIX):
        return feed
    try:
        secret = Secret.load(feed.removeprefix(SECRET_PREFIX))
    except ValueError:
        problem = "Prefect has no Secret block of that name; create one in the UI under Blocks"
        return NamedFeed(location="", source=feed, problem=problem)
    assert isinstance(secret, Secret)
    return NamedFeed(location=str(secret.get()).strip(), source=feed)


@task(name="check", task_run_name="check", persist_result=False)
def check(home: str, guide: Guide, run: str = "") -> list[str]:
    """Detects anomalies of feeds, logs them, and creates a Prefect table with anomalous days first.

    Args:
        home: Path of the home folder.
        guide: The published Guide.
        run: Id of the MLflow run to which metrics are logged; empty to log none.

    Returns:
        One line of text per anomaly.
    """
    workspace = Workspace(home)
    guide_check = check_guide(workspace.folder(guide), read_readings(workspace.home))
    for anomaly in guide_check.anomalies[:20]:
        logger().warning("%s", anomaly)
    if TaskRunContext.get():
        rows = [dict(row) for row in (*guide_check.readings, *guide_check.days)]
        rows.sort(key=lambda row: (not row["anomalies"], row["source"], row["day"]))
        summary = f"{len(guide_check.days)} days of feeds, {len(guide_check.anomalies)} anomalies"
        create_table_artifact(table=rows[:MAX_TABLE_ROWS], key="guide-checks", description=summary)  # pyright: ignore[reportUnusedCoroutine]
        for row in guide_check.readings:
            feed = {
                "prefect.resource.id": f"guidespace.feed.{row['source']}",
                "prefect.resource.name": Path(row["source"]).name,
            }
            emit_event(FEED_EVENT, resource=feed, payload={"what": row["anomalies"]})
    if run:
        Tracking(workspace.home).log_progress(run, 0, guide_check.metrics)
    return list(guide_check.anomalies)


def logger() -> Any:
    """Returns Prefect's logger of the run, or a standard logger outside of a run."""
    try:
        return get_run_logger()
    except MissingContextError:
        return logging.getLogger("guidespace.ingest")


class Reporter:
    """Reports progress and results to the log and the progress bar of the Prefect run, if there is a run."""

    def __init__(self) -> None:
        self.logger = logger()
        self.bar: UUID | None = None
        if TaskRunContext.get():
            self.bar = create_progress_artifact(progress=0.0, key="ingest", description="Feeds read")  # pyright: ignore[reportAttributeAccessIssue, reportAssignmentType]

    def __call__(self, event: Progress | FeedResult | Failure) -> None:
        """Reports progress, the result of a feed or a failure."""
        if not isinstance(event, Progress):
            self.logger.log(logging.ERROR if isinstance(event, Failure) else logging.INFO, "%s", event)
            return
        if event.step < event.total:
            self.logger.info("%s", event.note)
        if self.bar is not None:
            update_progress_artifact(self.bar, progress=event.percent)  # pyright: ignore[reportUnusedCoroutine]
