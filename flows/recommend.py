"""What is on tonight, for every viewer of a home: lists, pages of some of them, and an MLflow run."""

import datetime
from dataclasses import asdict
from typing import Any

from prefect import flow
from pydantic import Field

from flows.ownership import tag_with_home
from flows.run_context import close_crashed
from flows.tracked import open_run
from storage.artifacts import Tonight
from storage.home.zones import home_zone, in_zone
from tasks.form import in_form
from tasks.tonight.evening import evening_interval
from tasks.tonight.settings import TONIGHT, TonightSettings
from tasks.tonight.task import recommend as recommend_all

# As the default of a flow's parameter, with the keys by which the form chooses tabs (tasks/form.py).
DEFAULT: Any = Field(TONIGHT, json_schema_extra={"default": in_form(asdict(TONIGHT))})


@flow(
    name="recommend", on_running=[tag_with_home], on_crashed=[close_crashed], on_cancellation=[close_crashed]
)
def recommend(
    home: str = "guidespace-home",
    at: datetime.datetime | None = None,
    hours: float | None = None,
    settings: TonightSettings = DEFAULT,
) -> Tonight:
    """Makes a list of what is on tonight for every viewer who likes something.

    Args:
        home: Folder with a guide, a model that serves, and likes (`guidespace like`).
        at: The moment from which programmes count, now if empty; without a zone in the home's.
        hours: So many from then; empty: until midnight, at least three.
        settings: How programmes are ranked.
    """
    zone = home_zone(home)
    now = in_zone(at or datetime.datetime.now(zone), zone)
    begin, end = evening_interval(now, None, None, hours)
    parameters = {"begin": begin.isoformat(), **asdict(settings)}
    with open_run(home, "lists of tonight", f"tonight {begin:%F %H:%M}", parameters) as run:
        return recommend_all(home, begin, end, settings, run)
