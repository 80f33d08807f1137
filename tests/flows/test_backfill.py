"""Nights of past dates: which are made, what they leave alone, and what cannot be asked for."""

import datetime
import json
import shutil
import subprocess
import sys

import pytest

from flows.backfill import dates_of, due
from storage.stages import ROOT
from storage.tracking import Registry, Tracking
from storage.tracking.nights import read_nights
from tests.flows.command import SAMPLE

DAY = datetime.date(2025, 3, 1)
BACKFILLS = """
import datetime, json, sys
from flows.server import start_prefect
home, folder, calls = sys.argv[1:]
start_prefect(home)()
from flows.backfill import backfill
from flows.ingest import ingest
print(ingest([f"{folder}/guide-2025-03-17.xml.gz"], home=home).counts["programmes"])
for first, last, *changes in json.loads(calls):
    span = datetime.date.fromisoformat(first), datetime.date.fromisoformat(last)
    given = {"feeds": [folder], "preset": "smoke", "changes": ["train.epochs=1", *changes], "home": home}
    print(backfill(*span, **given, return_state=True).message)
"""


def test_a_span_has_both_its_ends_and_none_in_the_future():
    assert dates_of(DAY, datetime.date(2025, 3, 3), DAY.replace(day=4)) == [
        DAY.replace(day=n) for n in (1, 2, 3)
    ]
    assert dates_of(DAY, DAY, DAY) == [DAY]
    for first, last in ((DAY, DAY.replace(day=5)), (DAY.replace(day=2), DAY)):
        with pytest.raises(ValueError, match="no span of dates until today, 2025-03-04"):
            dates_of(first, last, DAY.replace(day=4))
    assert due(DAY).time() == datetime.time(3, 30) and due(DAY).tzinfo


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nights_that_lack_are_made_and_the_champion_stays(night, tmp_path):
    home = shutil.copytree(night[0], tmp_path / "home")
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
    command = [sys.executable, "-c", BACKFILLS, str(home), str(tmp_path), json.dumps(calls)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=500)
    read, early, failed, made, again = done.stdout.splitlines()
    assert int(read) > 9_000  # of the deployment ingest: now, under the name that the file has
    assert "knew no guide on 2025-03-16" in early and "its guides are of 2025-03-17 00:00 to " in early
    assert failed == "2 of 2 nights failed: 2025-03-17, 2025-03-18"
    assert (made, again) == ("2 nights made, 0 were there", "0 nights made, 2 were there")
    nights = read_nights(tracking)
    assert [each.champion for each in nights] == [False, False, True]
    assert [each.at for each in nights[:2]] == [due(datetime.date(2025, 3, day)) for day in (17, 18)]
    assert nights[1].metrics["drift/neighbours_stayed"] == 1.0  # beside that of the day before
    assert "drift/neighbours_stayed" not in nights[0].metrics
    assert (
        Registry(home).champion() == champion and (home / "latest.json").read_text(encoding="utf-8") == latest
    )
    page = (home / "nights.html").read_text(encoding="utf-8")
    assert page.index("2025-03-17 ") < page.index("2025-03-18 ")
    version = tracking.client.get_model_version(Registry(home).name, nights[1].version)
    assert version.description.startswith("Not promoted on ")
