"""Recommends programmes of this evening to every viewer of a home, as tables, pages and an MLflow run."""

import datetime
from dataclasses import asdict
from typing import Any

from prefect import flow
from pydantic import Field

from flows.defaults import DEFAULT_HOME
from flows.run_context import RUN_HOOKS, open_run
from storage.artifacts import Tonight
from storage.home.zones import home_zone, in_zone
from tasks.form import to_form_json
from tasks.tonight.evening import evening_interval
from tasks.tonight.settings import TONIGHT, TonightSettings
from tasks.tonight.task import recommend as recommend_all

# The JSON default has the keys by which Prefect's Run form selects the tabs of strategies (tasks/form.py).
DEFAULT_SETTINGS: Any = Field(TONIGHT, json_schema_extra={"default": to_form_json(asdict(TONIGHT))})


@flow(name="recommend", **RUN_HOOKS)
def recommend(
    home: str = DEFAULT_HOME,
    at: datetime.datetime | None = None,
    hours: float | None = None,
    settings: TonightSettings = DEFAULT_SETTINGS,
) -> Tonight:
    """Recommends programmes of this evening to every viewer with likes.

    Args:
        home: Folder with a guide, a champion model, and likes (`guidespace like`).
        at: Earliest start of a programme; empty: now. A time without a zone is in the home's time zone.
        hours: Length of the interval in hours; empty: until midnight, but at least three hours.
        settings: How programmes are ranked.
    """
    zone = home_zone(home)
    now = in_zone(at or datetime.datetime.now(zone), zone)
    begin, end = evening_interval(now, None, None, hours)
    parameters = {"begin": begin.isoformat(), **asdict(settings)}
    with open_run(home, "lists of tonight", f"tonight {begin:%F %H:%M}", parameters) as run:
        return recommend_all(home, begin, end, settings, run)
