"""kill -9 at random times leaves the old or the new state, and the next run completes."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from guides import guide

from storage.artifacts import Guide
from storage.catalogue.feeds import read_status
from storage.home.workspace import Workspace
from tasks.ingest.publish import read_and_publish
from tasks.ingest.settings import IngestSettings
from tests.contents import catalogue_contents as contents

CHILD = """
import sys
from pathlib import Path
from storage.home.workspace import Workspace
from tasks.ingest.publish import read_and_publish
from tasks.ingest.settings import IngestSettings
if __name__ == "__main__":
    print("ready", flush=True)
    settings = IngestSettings(batch_rows=2000)
    read_and_publish(Workspace(sys.argv[1]), sys.argv[2:], settings, None, lambda event: None)
    print("done", flush=True)
"""
PROGRAMME = '<programme channel="{}" start="{}"><title>t {} {}</title><desc>d {}\u200b</desc></programme>'


def schedule(seed: int) -> bytes:
    """Builds 20,000 programmes; another seed replaces half of them."""
    return guide(
        *(
            PROGRAMME.format(
                i % 9,
                f"202503{i % 28 + 1:02d}{i // 28 % 24:02d}{i // 672 % 60:02d}",
                seed if i % 2 else 0,
                i,
                i % 7,
            )
            for i in range(20_000)
        )
    )


def publish(home: Path, *feeds: Path) -> Guide:
    return read_and_publish(
        Workspace(home), [str(feed) for feed in feeds], IngestSettings(), None, lambda event: None
    )


def kill_at_random(tmp_path: Path, times: int, seed: int) -> None:
    chance = random.Random(seed)
    feed = tmp_path / "guide.xml"
    reference_home = tmp_path / "whole"
    states: list[tuple[dict[str, tuple[int, int]], dict[str, int]]] = []
    seconds = 0.0
    for number in (1, 2):
        feed.write_bytes(schedule(number))
        started = time.perf_counter()
        last = publish(reference_home, feed)
        seconds = time.perf_counter() - started
        states.append((contents(reference_home), last.counts))
    home = tmp_path / "home"
    killed = 0
    for attempt in range(times):
        if not home.exists() or contents(home) == states[1][0]:
            home = tmp_path / f"home{attempt}"
            feed.write_bytes(schedule(1))
            publish(home, feed)
            feed.write_bytes(schedule(2))
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(home), str(feed)], stdout=subprocess.PIPE, encoding="utf-8"
        )
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0, 1.2 * seconds))
        os.kill(child.pid, signal.SIGKILL)
        killed += "done" not in child.stdout.read()
        child.wait(timeout=10)
        assert contents(home) in (states[0][0], states[1][0]), f"attempt {attempt}"
        assert read_status(home)["programmes"] in (
            states[0][0]["programmes"][0],
            states[1][0]["programmes"][0],
        )
    assert killed
    assert publish(home, feed).counts == states[1][1]
    assert contents(home) == states[1][0]


@pytest.mark.slow
def test_killed_three_times_at_random(tmp_path: Path) -> None:
    kill_at_random(tmp_path, 3, 1)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_killed_fifty_times_at_random(tmp_path: Path) -> None:
    kill_at_random(tmp_path, 50, 2)
