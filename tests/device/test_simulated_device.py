"""GPU tests on a simulated device, which replaces torch.cuda in separate processes."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

from tests.device.mutations import MUTATIONS

ROOT = Path(__file__).parents[2]
TABLES = "tests/storage/tables/test_gpu.py"
NEIGHBOURS = "tests/tasks/neighbours/test_on_gpu.py"
OPTIMIZERS = "-Adam-", "RowwiseAdagrad"  # with state per element and per row
QUICK = "resident_table and SGD and not ASGD or restored"
QUICK_MUTATIONS = {  # those that the first seeds show
    "leaving rows wait for no step",
    "rows that no step uses leave before they have entered",
    "rows that enter are not recorded",
    "the loop's end does not wait for moves",
    "the CPU scatters at once",
    "a checkpoint does not wait for its rows",
    "restore does not wait for moves",
    "rows of a plan are not recorded",
}
NEEDS_GXX = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
pytestmark = NEEDS_GXX


def simulate(*selection: str, rounds: int = 1, seconds: int = 3600) -> subprocess.CompletedProcess[str]:
    """Runs tests on the device."""
    about = {**os.environ, "GUIDESPACE_ROUNDS": str(rounds), "OMP_NUM_THREADS": "1"}
    plugin = ["-p", "tests.device.plugin", "-p", "no:cacheprovider", "-m", "gpu", "-q", "--timeout", "300"]
    command = [sys.executable, "-m", "pytest", *plugin, *selection]
    return subprocess.run(
        command, cwd=ROOT, env=about, capture_output=True, encoding="utf-8", timeout=seconds
    )


@pytest.mark.slow
def test_the_device_and_the_tables_follow_their_rules():
    """Every rule once, and 4 rounds of what is quick; the rounds of all optimizers are soak tests."""
    once = f"not resident_table and not restored or {' or '.join(OPTIMIZERS)}"
    rules = "tests/device/laws.py", "tests/device/train_steps.py", TABLES, NEIGHBOURS
    for ran in (simulate(*rules, "-k", once), simulate(TABLES, "-k", QUICK, rounds=4)):
        assert not ran.returncode and "passed" in ran.stdout, ran.stdout[-4000:] + ran.stderr[-2000:]


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_a_thousand_seeds():
    ran = simulate(TABLES, "-k", "not hundred_tables", rounds=1000, seconds=24 * 3600)
    assert not ran.returncode and "passed" in ran.stdout, ran.stdout[-4000:]


def check_noticed(names: Collection[str], rounds: int) -> None:
    """Removes each wait or lifetime in turn; a test must fail or a kernel must read where nothing is."""
    about = {**os.environ, "GUIDESPACE_ROUNDS": str(rounds), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.device.mutate", *names]
    ran = subprocess.run(command, cwd=ROOT, env=about, capture_output=True, encoding="utf-8", timeout=3600)
    codes = dict(line.split("\t") for line in ran.stdout.splitlines())
    noticed = {str(int(pytest.ExitCode.TESTS_FAILED)), str(-signal.SIGABRT), str(-signal.SIGSEGV)}
    assert set(codes) == set(names) and set(codes.values()) <= noticed, f"{codes}\n{ran.stderr[-6000:]}"


@pytest.mark.slow
def test_removed_waits_are_detected():
    check_noticed(QUICK_MUTATIONS, rounds=4)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_further_removed_waits_are_detected():
    check_noticed(MUTATIONS.keys() - QUICK_MUTATIONS, rounds=20)
