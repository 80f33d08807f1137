"""Nights of past dates: selection, side effects and errors."""

import datetime
import json
import shutil
import uuid
from zoneinfo import ZoneInfo

import pytest

from flows.backfill import due_time, find_missing_dates, list_dates
from flows.nightly_run import format_instant
from storage.home.workspace import Workspace
from storage.home.zones import home_zone, set_zone
from storage.tracking import Registry, Tracking
from storage.tracking.nights import read_nights
from storage.tracking.tags import AS_OF_TAG, MODEL_VERSION_TAG
from tests.flows.command import SAMPLE, guidespace

DAY = datetime.date(2025, 3, 1)
BACKFILLS = """
import datetime, json, sys
from flows.server import start_prefect
home, folder, calls = sys.argv[1:]
start_prefect(home)()
from flows.backfill import backfill
from flows.ingest import ingest
from tests.flows.command import QUICK_NIGHT
print(ingest([f"{folder}/guide-2025-03-17.xml.gz"], home=home).counts["programmes"])
for first, last, *changes in json.loads(calls):
    span = datetime.date.fromisoformat(first), datetime.date.fromisoformat(last)
    changes = [*QUICK_NIGHT, "train.epochs=1", *changes]
    given = {"feeds": [folder], "preset": "smoke", "changes": changes, "home": home}
    print(backfill(*span, **given, return_state=True).message)
"""


def test_date_ranges_include_both_ends_and_no_future_date():
    assert list_dates(DAY, datetime.date(2025, 3, 3), DAY.replace(day=4)) == [
        DAY.replace(day=n) for n in (1, 2, 3)
    ]
    assert list_dates(DAY, DAY, DAY) == [DAY]
    for first, last in ((DAY, DAY.replace(day=5)), (DAY.replace(day=2), DAY)):
        with pytest.raises(ValueError, match=r"first <= last <= today \(2025-03-04\)"):
            list_dates(first, last, DAY.replace(day=4))


@pytest.mark.parametrize(
    ("zone", "date", "utc"),
    [
        ("America/Los_Angeles", "2025-03-08", "2025-03-08T11:30"),
        ("America/Los_Angeles", "2025-03-09", "2025-03-09T10:30"),  # clocks went forward at 02:00
        ("America/Los_Angeles", "2025-11-01", "2025-11-01T10:30"),
        ("America/Los_Angeles", "2025-11-02", "2025-11-02T11:30"),  # and back
        ("Australia/Lord_Howe", "2025-04-05", "2025-04-04T16:30"),
        ("Australia/Lord_Howe", "2025-04-06", "2025-04-05T17:00"),  # back by half an hour
        ("Australia/Lord_Howe", "2025-10-05", "2025-10-04T16:30"),  # and forward
    ],
)
def test_nights_are_due_at_half_past_three_in_the_zone_of_the_home(zone, date, utc):
    moment = due_time(datetime.date.fromisoformat(date), ZoneInfo(zone))
    assert f"{moment:%F %H:%M}" == f"{date} 03:30"
    assert moment == datetime.datetime.fromisoformat(utc).replace(tzinfo=datetime.UTC)


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Australia/Lord_Howe", "Europe/London"])
def test_a_night_has_the_date_on_which_it_was_due(tmp_path, zone):
    """Also where that instant is of another date in UTC or by the machine's clock."""
    home = Workspace(tmp_path / "home").home
    set_zone(home, zone)
    tracking, date = Tracking(home), datetime.date(2025, 10, 26)
    tags = {AS_OF_TAG: format_instant(due_time(date, home_zone(home))), MODEL_VERSION_TAG: "1"}
    tracking.end_run(tracking.start_run(str(uuid.uuid4()), "night", tags, {}))
    dates = [f"{date + datetime.timedelta(days=days)}" for days in (-1, 0, 1)]
    assert find_missing_dates.fn(str(home), dates) == ["2025-10-25", "2025-10-27"]
    assert f"{read_nights(tracking.mlflow)[0].at:%F %H:%M}" == "2025-10-26 03:30"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_missing_nights_run_without_changing_the_champion(copy_night, tmp_path):
    home = copy_night(tmp_path / "home")
    tracking, latest = Tracking(home), (home / "latest.json").read_text(encoding="utf-8")
    champion = Registry(home).champion()
    for day in (17, 18):
        shutil.copyfile(SAMPLE, tmp_path / f"guide-2025-03-{day}.xml.gz")
    calls = [
        ("2025-03-16", "2025-03-18"),
        ("2025-03-17", "2025-03-18", "preprocess.minimum_training_titles=1000000"),
        ("2025-03-17", "2025-03-18"),
        ("2025-03-17", "2025-03-18"),
    ]
    done = guidespace(home, tmp_path, json.dumps(calls), program=("-c", BACKFILLS))
    assert done.returncode == 0, done.stderr
    read, early, failed, made, again = done.stdout.splitlines()
    assert int(read) > 9_000  # of the deployment ingest: now, under the name that the file has
    assert "no guide as of 2025-03-16" in early and "its guides are from 2025-03-17 00:00 to " in early
    assert failed == "2 of 2 nights failed: 2025-03-17, 2025-03-18"
    assert (made, again) == (
        "2 nights finished, 0 had finished earlier",
        "0 nights finished, 2 had finished earlier",
    )
    nights = read_nights(tracking.mlflow)
    assert [each.champion for each in nights] == [False, False, True]
    instants = [due_time(datetime.date(2025, 3, day), datetime.UTC) for day in (17, 18)]
    assert [each.at for each in nights[:2]] == instants
    assert nights[1].metrics["drift/neighbours_stayed"] == 1.0  # beside that of the day before
    assert "drift/neighbours_stayed" not in nights[0].metrics
    assert (
        Registry(home).champion() == champion and (home / "latest.json").read_text(encoding="utf-8") == latest
    )
    page = (home / "nights.html").read_text(encoding="utf-8")
    assert page.index("2025-03-17 ") < page.index("2025-03-18 ")
    version = tracking.mlflow.client.get_model_version(Registry(home).name, nights[1].version)
    assert version.description.startswith("Not promoted on ")
