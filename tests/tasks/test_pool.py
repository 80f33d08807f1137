"""Pools of processes and what is left of them."""

import gc
import signal
import subprocess
import sys
import time

import psutil
import pytest

from storage.stages import ROOT
from tasks.pool import open_pool

HOLD = """
import os, time
from tasks.pool import open_pool

if __name__ == "__main__":
    with open_pool("processes", 1) as submit:
        print(submit(os.getpid).result(), flush=True)
        time.sleep(100)
"""


@pytest.mark.slow
def test_a_worker_ends_with_a_parent_that_was_killed(tmp_path):
    script = tmp_path / "hold.py"
    script.write_text(HOLD)
    with subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, env={"PYTHONPATH": str(ROOT)}, text=True
    ) as parent:
        assert parent.stdout is not None
        worker = psutil.Process(int(parent.stdout.readline()))
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 30
    while worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, "the worker outlived its parent"
        time.sleep(0.05)


def test_a_worker_collects_garbage_rarely():
    with open_pool("processes", 1) as submit:
        assert submit(gc.get_threshold).result()[0] == 50_000
