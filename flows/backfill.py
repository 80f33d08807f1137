"""Nights of past dates, each on what was known when it was due; they are kept beside and never serve."""

import datetime
from collections.abc import Sequence

from prefect import flow, get_run_logger, tags, task
from prefect.client.schemas.objects import State
from prefect.runtime import flow_run as this_run
from prefect.states import Completed, Failed

from flows.nightly import nightly
from flows.ownership import tag_with_home
from flows.run_context import MOST_NIGHTS, WAIT_SECONDS
from flows.settings import NO_CHANGES, Changes, Feeds, Preset, settle
from storage.home.workspace import Workspace
from storage.home.zones import home_zone
from storage.tracking import Tracking
from storage.tracking.nights import read_nights
from tasks.ingest.sources.dates import dated_guides
from tasks.ingest.task import ingest

DUE = datetime.time(3, 30)  # in the home's zone, as the schedule of nightly in prefect.yaml
NEVER = "publish.promote=never"
# a nested run has none of its deployment's; the automations ask for the first
TAGS = ("guidespace", "backfill")
NO_FEEDS: Feeds = []


def name_run() -> str:
    """The span: "2026-11-01 to 2026-11-05"."""
    return f"{this_run.parameters['first']} to {this_run.parameters['last']}"


@flow(name="backfill", flow_run_name=name_run, on_running=[tag_with_home])
def backfill(
    first: datetime.date,
    last: datetime.date,
    feeds: Feeds = NO_FEEDS,
    preset: Preset = "laptop",
    changes: Changes = NO_CHANGES,
    home: str = "guidespace-home",
) -> State:
    """Makes the nights that a home lacks, from date to date, each on what was known at 03:30 of its date.

    A night that fails does not stop the others; the run then fails at its end and names it. No champion
    changes.

    Args:
        first: The first date.
        last: The last date, today at the latest.
        feeds: Dated guides to read first, with dates in their names; empty: what the catalogue has.
        preset: Settings to start from.
        changes: What differs from the preset, such as train.epochs=5.
        home: Folder with the catalogue.
    """
    settings = settle(preset, (*changes, NEVER), None)
    zone = home_zone(home)
    dates = dates_of(first, last, datetime.datetime.now(zone).date())
    what = f"backfill of {first} to {last}"
    with Workspace(home).writing(what, wait_seconds=WAIT_SECONDS, report_wait=get_run_logger().warning):
        dated = dated_guides(feeds, first, last, zone, settings.ingest.private_addresses) if feeds else []
        ingest(home, dated, settings.ingest, due(first, zone))
    lacking = find_lacking(home, [f"{date}" for date in dates])
    with tags(*TAGS):
        states = {date: run_night(date, preset, (*changes, NEVER), home) for date in lacking}
    failed = [date for date, state in states.items() if not state.is_completed()]
    if failed:
        return Failed(message=f"{len(failed)} of {len(states)} nights failed: {', '.join(failed)}")
    return Completed(message=f"{len(states)} nights made, {len(dates) - len(states)} were there")


def dates_of(first: datetime.date, last: datetime.date, today: datetime.date) -> list[datetime.date]:
    """The dates of a span, both ends included.

    Raises:
        ValueError: The span is empty, or ends after today.
    """
    if not first <= last <= today:
        raise ValueError(f"{first} to {last} is no span of dates until today, {today}: name first, then last")
    return [first + datetime.timedelta(days=days) for days in range((last - first).days + 1)]


def due(date: datetime.date, zone: datetime.tzinfo) -> datetime.datetime:
    """When the night of a date was due in a zone."""
    return datetime.datetime.combine(date, DUE, zone)


@task(task_run_name="find lacking nights", persist_result=True, result_serializer="json")
def find_lacking(home: str, dates: list[str]) -> list[str]:
    """Those of the dates on which no night is. A retry is answered from Prefect's cache: it makes the same
    calls in the same order, by which Prefect finds what it has finished.
    """
    nights = read_nights(Tracking(home), MOST_NIGHTS)
    there = {f"{night.at:%F}" for night in nights if night.finished}
    return [date for date in dates if date not in there]


def run_night(date: str, preset: Preset, changes: Sequence[str], home: str) -> State:
    """Runs the night of a date, as a run of its own below this one; returns how it ended."""
    at = due(datetime.date.fromisoformat(date), home_zone(home))
    kept = {"persist_result": True, "result_serializer": "json"}  # what a retry does not make again
    named = nightly.with_options(flow_run_name=f"{at:%Y-%m-%d %H:%M} back-filled", **kept)
    return named([], preset, changes, at, home, return_state=True)
