"""Stage ingest: feeds to Guide. The catalogue's ledger makes it idempotent, so it is not cached."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from prefect import get_run_logger, task
from prefect.artifacts import create_progress_artifact, create_table_artifact, update_progress_artifact
from prefect.blocks.system import Secret
from prefect.context import TaskRunContext
from prefect.exceptions import MissingContextError

from storage.artifacts import Guide, Progress
from storage.readings import read_readings
from storage.tracking import Tracking
from storage.workspace import Workspace
from tasks.ingest.checks import check_guide
from tasks.ingest.dated import Dated
from tasks.ingest.feeds import BLOCK, FeedError, Named
from tasks.ingest.outcomes import Failure, Outcome
from tasks.ingest.publish import read_and_publish
from tasks.ingest.settings import IngestSettings

TABLE_ROWS = 500  # an artifact is a page, not a database


def _is_passing(task: object, run: object, state: Any) -> bool:
    """Whether trying again can help: the disk or the network failed, not the feed."""
    try:
        state.result()
    except OSError:
        return True
    except Exception:
        return False
    return False


@task(
    name="ingest",
    task_run_name="ingest",
    persist_result=False,
    retries=2,
    retry_delay_seconds=5,
    retry_jitter_factor=0.5,
    retry_condition_fn=_is_passing,
)
def ingest(home: str, feeds: Sequence[str | Dated], settings: IngestSettings, as_of: datetime.datetime | None = None) -> Guide:
    """Reads feeds into the catalogue and publishes the Guide: a snapshot of what it knows.

    Args:
        home: Where everything is.
        feeds: Paths, patterns, directories, URLs, env:NAME, secret:NAME; or guides with dates. None is
            needed where there is an ``as_of``.
        settings: Caps, thresholds, what is left out of the snapshot.
        as_of: The snapshot holds what was known then, by grabs made up to that instant; None is now.

    Raises:
        FeedError: No feed can be used, or not one that ``ingest.required`` names; what the others said is stored.
        HomeLocked: Another process has the catalogue open.
    """
    return read_and_publish(Workspace(home), [_opened(feed) for feed in feeds], settings, as_of, Teller())


def _opened(feed: str | Dated) -> str | Named:
    """What a Secret block holds, known by the block's name; any other feed as it is."""
    if isinstance(feed, Dated) or not feed.startswith(BLOCK):
        return feed
    try:
        held = Secret.load(feed.removeprefix(BLOCK))
    except ValueError as error:
        problem = "Prefect has no Secret block of that name; make one in the UI under Blocks"
        raise FeedError(f"{feed}: {problem}") from error
    assert isinstance(held, Secret)
    return Named(location=str(held.get()).strip(), source=feed)


@task(name="check", task_run_name="check", persist_result=False)
def check(home: str, guide: Guide, run: str = "") -> int:
    """Checks what was read, and the Guide day by day: a table artifact of the newest days and of every anomaly, and metrics in MLflow.

    Args:
        home: Where everything is.
        guide: What ingest published.
        run: MLflow run; empty tells MLflow nothing.

    Returns:
        Number of anomalies.
    """
    workspace = Workspace(home)
    checked = check_guide(workspace.folder(guide), read_readings(workspace.home))
    for anomaly in checked.anomalies[:20]:
        logger().warning("%s", anomaly)
    if TaskRunContext.get():
        rows = sorted([*checked.readings, *checked.days], key=lambda row: (not row["anomalies"], row["source"], row["day"]))[:TABLE_ROWS]
        summary = f"{len(checked.days)} days of feeds, {len(checked.anomalies)} anomalies"
        create_table_artifact(table=[dict(row) for row in rows], key="guide-checks", description=summary)  # pyright: ignore[reportUnusedCoroutine]
    if run:
        Tracking(workspace.home).log_progress(run, 0, checked.metrics)
    return len(checked.anomalies)


def logger() -> Any:
    """The run's logger, or a plain one outside a run."""
    try:
        return get_run_logger()
    except MissingContextError:
        return logging.getLogger("guidespace.ingest")


class Teller:
    """Forwards what the reading yields: to the run's log and its progress bar, or to plain logging outside a run."""

    def __init__(self) -> None:
        self.logger = logger()
        self.bar: UUID | None = None
        if TaskRunContext.get():
            self.bar = create_progress_artifact(progress=0.0, key="ingest", description="Feeds read")  # pyright: ignore[reportAttributeAccessIssue, reportAssignmentType]

    def __call__(self, event: Progress | Outcome | Failure) -> None:
        """Forwards an event; anomalies are the check's."""
        if isinstance(event, Failure):
            self.logger.error("%s", event)
            return
        if isinstance(event, Outcome):
            self.logger.info("%s", event)
            return
        if event.step < event.total:
            self.logger.info("%s", event.note)
        if self.bar is not None:
            update_progress_artifact(self.bar, progress=event.percent)  # pyright: ignore[reportUnusedCoroutine]
