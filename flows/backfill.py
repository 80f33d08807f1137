"""Runs the nightly flow for past dates, each with the guide as it was at 03:30 of that date.

These runs never change the champion (the registered model that is served). The command
``guidespace backfill`` (flows/cli/run.py) is different: it only reads guides with dates in their names.
"""

import datetime
from collections.abc import Sequence

from prefect import flow, get_run_logger, tags, task
from prefect.client.schemas.objects import State
from prefect.runtime import flow_run as this_run
from prefect.states import Completed, Failed

from flows.defaults import DEFAULT_HOME, RUN_TAG, WAIT_SECONDS
from flows.nightly import nightly
from flows.nightly_run import MAX_NIGHTS
from flows.ownership import tag_with_home
from flows.settings import NO_CHANGES, Changes, Feeds, Preset, resolve_settings
from storage.home.workspace import Workspace
from storage.home.zones import home_zone
from storage.tracking.connection import MlflowConnection
from storage.tracking.nights import read_nights
from tasks.ingest.sources.dates import dated_guides
from tasks.ingest.task import ingest

DUE_TIME = datetime.time(3, 30)  # in the home's time zone; prefect.yaml schedules nightly at this time, too
NO_PROMOTION = "publish.promote=never"
# Tags of nested runs, which do not inherit the tags of the deployment; automations need the tag guidespace.
TAGS = (RUN_TAG, "backfill")
NO_FEEDS: Feeds = []


def name_backfill() -> str:
    """Returns a name for the current flow run, its first and last date: "2026-11-01 to 2026-11-05"."""
    return f"{this_run.parameters['first']} to {this_run.parameters['last']}"


@flow(name="backfill", flow_run_name=name_backfill, on_running=[tag_with_home])
def backfill(
    first: datetime.date,
    last: datetime.date,
    feeds: Feeds = NO_FEEDS,
    preset: Preset = "laptop",
    changes: Changes = NO_CHANGES,
    home: str = DEFAULT_HOME,
) -> State:
    """Runs the nightly flow for each date from ``first`` to ``last`` that has no finished nightly run.

    Each run uses the guide as it was at 03:30 of its date. If a run fails, the others still run; this flow
    then fails at its end and names the failed dates. The champion (the served model) does not change.

    Args:
        first: First date.
        last: Last date; not after today.
        feeds: Guides with dates in their names, read before the first run; empty: use only the catalogue.
        preset: Settings to start from.
        changes: Changes of the preset, such as train.epochs=5.
        home: Folder of the home, which holds the catalogue.
    """
    settings = resolve_settings(preset, (*changes, NO_PROMOTION), None)
    zone = home_zone(home)
    dates = list_dates(first, last, datetime.datetime.now(zone).date())
    purpose = f"backfill of {first} to {last}"
    with Workspace(home).writing(purpose, wait_seconds=WAIT_SECONDS, report_wait=get_run_logger().warning):
        guides = dated_guides(feeds, first, last, zone, settings.ingest.private_addresses) if feeds else []
        ingest(home, guides, settings.ingest, due_time(first, zone))
    missing_dates = find_missing_dates(home, [f"{date}" for date in dates])
    with tags(*TAGS):
        states = {date: run_night(date, preset, (*changes, NO_PROMOTION), home) for date in missing_dates}
    failed_dates = [date for date, state in states.items() if not state.is_completed()]
    if failed_dates:
        return Failed(
            message=f"{len(failed_dates)} of {len(states)} nights failed: {', '.join(failed_dates)}"
        )
    return Completed(
        message=f"{len(states)} nights finished, {len(dates) - len(states)} had finished earlier"
    )


def list_dates(first: datetime.date, last: datetime.date, today: datetime.date) -> list[datetime.date]:
    """Returns the dates from ``first`` to ``last``, both included.

    Raises:
        ValueError: ``last`` is before ``first`` or after ``today``.
    """
    if not first <= last <= today:
        raise ValueError(f"expected dates with first <= last <= today ({today}), got {first} to {last}")
    return [first + datetime.timedelta(days=days) for days in range((last - first).days + 1)]


def due_time(date: datetime.date, zone: datetime.tzinfo) -> datetime.datetime:
    """Returns the instant at which the nightly run of a date is due: DUE_TIME in the time zone ``zone``."""
    return datetime.datetime.combine(date, DUE_TIME, zone)


@task(task_run_name="find missing nights", persist_result=True, result_serializer="json")
def find_missing_dates(home: str, dates: list[str]) -> list[str]:
    """Returns the dates that have no finished nightly run.

    Prefect stores the result. A retry therefore runs the same nights in the same order, and Prefect reuses
    the results of nights that have finished.
    """
    nights = read_nights(MlflowConnection(home), MAX_NIGHTS)
    finished_dates = {f"{night.at:%F}" for night in nights if night.finished}
    return [date for date in dates if date not in finished_dates]


def run_night(date: str, preset: Preset, changes: Sequence[str], home: str) -> State:
    """Runs the nightly flow for a date as a nested flow run, and returns the final state of that run."""
    due_at = due_time(datetime.date.fromisoformat(date), home_zone(home))
    flow = nightly.with_options(
        flow_run_name=f"{due_at:%Y-%m-%d %H:%M} back-filled",
        persist_result=True,  # so that a retry does not repeat a finished night
        result_serializer="json",
    )
    return flow([], preset, changes, due_at, home, return_state=True)
