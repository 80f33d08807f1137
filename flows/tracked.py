"""The MLflow run of a flow that trains no night."""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from prefect import get_run_logger
from prefect.runtime import flow_run as this_run

from flows.run_context import WAIT_SECONDS, mark_crashed
from storage.home.workspace import Workspace
from storage.tracking import Tracking


@contextmanager
def open_run(home: str, what: str, name: str, parameters: Mapping[str, Any]) -> Iterator[str]:
    """Holds the home, opens the MLflow run of this flow run, and ends it as the flow ends.

    Args:
        home: A home that exists.
        what: For other writers, who wait.
        name: Of the MLflow run.
        parameters: Of the MLflow run.
    """
    workspace, logger = Workspace(home, create=False), get_run_logger()
    flow_run_id = this_run.id or str(uuid.uuid4())
    with workspace.writing(
        what, flow_run=flow_run_id, wait_seconds=WAIT_SECONDS, report_wait=logger.warning
    ) as died:
        mark_crashed(home, died, flow_run_id)
        tracking = Tracking(workspace.home)
        run = tracking.start_run(flow_run_id, name, {}, parameters)
        logger.info("MLflow: %s", tracking.where(run))
        try:
            yield run
        except BaseException as error:
            tracking.end_run(run, "FAILED" if isinstance(error, Exception) else "KILLED")
            raise
        tracking.end_run(run)
