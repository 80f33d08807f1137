"""The work of each stage of a night grows as stated from 400 to 1,600 titles: it is counted, not timed.

Lines of compiled loops are not counted (tests/growth/night_work.py).
"""

import json
import subprocess
import sys

import pytest

from storage.stages import ROOT
from tests.growth.night_work import COUNTS

TITLES = 400
LINEAR = 5.0  # a little more than 4: words get more n-grams, and buffers grow in steps
QUADRATIC = 16.0  # held-out titles are compared with training titles, and titles with titles
STAGES = (
    "ingest", "check", "tokenize", "preprocess", "MLflow start", "baselines", "linear", "train", "augment",
    "embed", "pack", "neighbours", "layout", "cluster", "evaluate", "draw", "register", "promote", "report",
)  # fmt: skip
COMPARING = ("baselines", "pack", "neighbours", "evaluate", "draw", "promote")
LIMITS = {
    ("neighbours", "bytes"): 6.0,  # the tile of products reaches its full size at 1,024 titles
    ("draw", "lines"): 8.0,  # from 200 held-out titles on, a language has a separate calibration
    **{(stage, "products"): QUADRATIC for stage in COMPARING},
}


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, dict[str, int]]]:
    """Counts by stage of a night with TITLES titles, and of one with four times as many."""
    folder = tmp_path_factory.mktemp("growth")
    command = [sys.executable, "-m", "tests.growth.night_work", folder, TITLES, 4 * TITLES]
    done = subprocess.run([*map(str, command)], cwd=ROOT, capture_output=True, encoding="utf-8", timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    return list(json.loads(done.stdout.splitlines()[-1]).values())


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("stage", STAGES)
def test_work_grows_as_stated(counts: list[dict[str, dict[str, int]]], stage: str):
    small, large = counts
    assert set(small) == set(large) == {*STAGES, "quadratic"}
    for name in COUNTS:
        limit = LIMITS.get((stage, name), LINEAR)
        assert large[stage][name] <= limit * small[stage][name], (name, small[stage], large[stage])


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", COUNTS)
def test_quadratic_work_is_counted(counts: list[dict[str, dict[str, int]]], name: str):
    small, large = counts
    assert large["quadratic"][name] > 15 * small["quadratic"][name] > 0
    assert large["preprocess"][name] > small["preprocess"][name] > 0
