"""Ten million titles: bounded memory, linear time (benchmarks/text/titles.py measures)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from storage.stages import ROOT


def claims(folder: Path, *sizes: int) -> dict[str, dict]:
    command = [sys.executable, "-m", "benchmarks.text.titles", "--json", "--sizes", *map(str, sizes)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(folder)},
        check=True,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    return {claim["name"]: claim for claim in json.loads(done.stdout)}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_benchmark_measures_both_stages(tmp_path: Path):
    found = claims(tmp_path, 5_000, 10_000)
    assert len(found) == 10 and all(claim["met"] in (True, None) for claim in found.values())
    assert found["tokenize, 10,000 titles: peak memory, GB"]["value"] < 1


@pytest.mark.soak
@pytest.mark.timeout(6 * 3600)
def test_ten_million_titles(tmp_path: Path):
    found = claims(tmp_path, 1_000_000, 10_000_000)
    assert {name for name, claim in found.items() if claim["met"] is False} == set()
