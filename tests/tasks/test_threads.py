"""Threads of torch wait passively, because OMP_WAIT_POLICY is set before torch is loaded."""

import os
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_openmp_threads_wait_passively():
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"} | {
        "OMP_DISPLAY_ENV": "true"
    }
    done = subprocess.run(
        [sys.executable, "-c", "import tasks.train.loop"],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert "OMP_WAIT_POLICY = 'PASSIVE'" in done.stderr
