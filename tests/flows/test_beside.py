"""A night with a helper process."""

import json
from pathlib import Path

import pytest

from tests.flows.command import SAMPLE, guidespace

NIGHT = """
import sys
from concurrent.futures import ProcessPoolExecutor

import tasks.pool

if __name__ == "__main__":
    tasks.pool.MIN_HELPER_TITLES, submitted, submit = 0, [], ProcessPoolExecutor.submit

    def note(self, function, *given, **named):
        submitted.append(function.__name__)
        return submit(self, function, *given, **named)

    ProcessPoolExecutor.submit = note
    from flows.cli.main import main

    assert main(sys.argv[1:]) == 0
    print(*sorted(set(submitted)))
"""


@pytest.mark.slow
def test_a_helper_process_publishes_the_same_bytes(night, tmp_path):
    home = tmp_path / "home"
    script = tmp_path / "night.py"
    script.write_text(NIGHT, encoding="utf-8")
    given = "nightly", "--feed", SAMPLE, "--home", home, "--preset", "smoke"
    done = guidespace(*given, program=[script])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "_advance _begin measure_agreement write_layout write_page"
    assert "baselines   100 %" in done.stdout

    def content(home: Path) -> dict[str, bytes]:
        named = ("scores.json", "baselines.json", "places.parquet", "map.html")
        return {name: next((home / "artifacts").rglob(name)).read_bytes() for name in named}

    here, apart = content(night[0]), content(home)
    assert json.loads(here["scores.json"])["protocols"]
    for name, own in here.items():
        assert own == apart[name], name
