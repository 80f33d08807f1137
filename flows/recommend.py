"""What is on tonight, for every viewer of a home: lists, pages of some of them, and an MLflow run."""

import datetime
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from prefect import flow, get_run_logger
from prefect.runtime import flow_run as this_run
from pydantic import Field

from flows.night import WAIT_SECONDS, close_crashed
from flows.tonight import evening_of
from storage.artifacts import Tonight
from storage.tracking import Tracking
from storage.workspace import Workspace
from tasks.form import in_form
from tasks.tonight.settings import TONIGHT, TonightSettings
from tasks.tonight.task import recommend as recommend_all

# As the default of a flow's parameter, with the keys by which the form chooses tabs (tasks/form.py).
DEFAULT: Any = Field(TONIGHT, json_schema_extra={"default": in_form(asdict(TONIGHT))})


@flow(name="recommend", on_crashed=[close_crashed], on_cancellation=[close_crashed])
def recommend(
    home: str = "guidespace-home",
    at: datetime.datetime | None = None,
    hours: float | None = None,
    settings: TonightSettings = DEFAULT,
) -> Tonight:
    """Makes a list of what is on tonight for every viewer who likes something.

    Args:
        home: Folder with a guide, a model that serves, and likes (`guidespace like`).
        at: The moment from which programmes count, now if empty; without a zone in that of the machine.
        hours: So many from then; empty: until midnight, at least three.
        settings: How programmes are ranked.
    """
    now = (at or datetime.datetime.now()).astimezone()
    begin, end = evening_of(now, None, None, hours)
    with _open_run(home, begin, settings) as run:
        return recommend_all(home, begin, end, settings, run)


@contextmanager
def _open_run(home: str, begin: datetime.datetime, settings: TonightSettings) -> Iterator[str]:
    """Holds the home, opens the MLflow run of this flow run, and ends it as the flow ends."""
    workspace, logger = Workspace(home, create=False), get_run_logger()
    with workspace.writing("lists of tonight", wait_seconds=WAIT_SECONDS, tell=logger.warning):
        tracking = Tracking(workspace.home)
        parameters = {"begin": begin.isoformat(), **asdict(settings)}
        run = tracking.start_run(
            this_run.id or str(uuid.uuid4()), f"tonight {begin:%F %H:%M}", {}, parameters
        )
        logger.info("MLflow: %s", tracking.where(run))
        try:
            yield run
        except BaseException as error:
            tracking.end_run(run, "FAILED" if isinstance(error, Exception) else "KILLED")
            raise
        tracking.end_run(run)
