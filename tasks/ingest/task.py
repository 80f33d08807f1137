"""Stage ingest: feeds to Guide. The catalogue's ledger makes it idempotent, so it is not cached."""

from __future__ import annotations

import datetime
import logging
import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from prefect import get_run_logger, task
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.context import TaskRunContext
from prefect.exceptions import MissingContextError

from storage.artifacts import Guide, Progress
from storage.catalogue.connection import Catalogue
from storage.catalogue.snapshots import Choice, snapshot, snapshot_digest
from storage.catalogue.status import publish_status
from storage.workspace import Workspace
from tasks.ingest.ingest import Dated, Outcome, ingest_feeds, leave_no_downloads
from tasks.ingest.settings import IngestSettings


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
        feeds: Paths, patterns, directories, URLs; or guides with dates. None is needed where there is an ``as_of``.
        settings: Caps, thresholds, what is left out of the snapshot.
        as_of: The snapshot holds what was known then, by grabs made up to that instant; None is now.

    Raises:
        FeedError: A feed cannot be used; nothing of it is stored, and the feeds before it stay.
        HomeLocked: Another process has the catalogue open.
    """
    workspace = Workspace(home)
    tell = _Teller()
    leave_no_downloads(workspace.home)
    with Catalogue.open(workspace.home) as catalogue:
        publish_status(catalogue)  # a run killed between its commit and this file is caught up with
        for event in ingest_feeds(catalogue, feeds, settings, clock=time.monotonic, now=lambda: datetime.datetime.now(datetime.UTC)) if feeds or as_of is None else ():
            tell(event)
        choice = Choice(leave_out=settings.leave_out, priority=settings.priority, as_of=as_of)
        digest = snapshot_digest(catalogue, choice)
        known = workspace.read(Guide, digest[:32])
        if known is not None:
            return known
        with workspace.publishing(Guide, digest[:32]) as draft:
            draft.counts |= snapshot(catalogue, draft.folder, choice)
            draft.details |= {"schema_version": catalogue.schema_version, "left_out": list(settings.leave_out), "as_of": as_of and as_of.isoformat()}
            draft.digest = digest
    return draft.artifact


class _Teller:
    """Forwards what the reading yields: to the run's log and its progress bar, or to plain logging outside a run."""

    def __init__(self) -> None:
        try:
            self.logger: Any = get_run_logger()
        except MissingContextError:
            self.logger = logging.getLogger("guidespace.ingest")
        self.bar: UUID | None = None
        if TaskRunContext.get():
            self.bar = create_progress_artifact(progress=0.0, key="ingest", description="Feeds read")  # pyright: ignore[reportAttributeAccessIssue, reportAssignmentType]

    def __call__(self, event: Progress | Outcome) -> None:
        if isinstance(event, Outcome):
            self.logger.info("%s", event)
            return
        if event.step < event.total:
            self.logger.info("%s", event.note)
        if self.bar is not None:
            update_progress_artifact(self.bar, progress=event.percent)  # pyright: ignore[reportUnusedCoroutine]
