"""The GPU's tests on a simulated device, in processes of their own: it takes the place of torch.cuda."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.device.mutations import MUTATIONS

ROOT = Path(__file__).parents[2]
TABLES = "tests/storage/tables/test_gpu.py"
NEIGHBOURS = "tests/tasks/neighbours/test_on_gpu.py"
OPTIMIZERS = "-Adam-", "RowwiseAdagrad"  # with state per element and per row
QUICK = "resident_table and SGD and not ASGD or restored"
# Mutations that the first seeds show.
QUICK_MUTATIONS = "a step waits for no rows", "restore does not wait for moves"
NEEDS_GXX = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
pytestmark = NEEDS_GXX


def simulate(
    *selection: str, rounds: int = 1, root: Path = ROOT, seconds: int = 3600
) -> subprocess.CompletedProcess[str]:
    """Runs tests on the device, from the code under ``root``."""
    about = {**os.environ, "GUIDESPACE_ROUNDS": str(rounds), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(root)}
    plugin = ["-p", "tests.device.plugin", "-p", "no:cacheprovider", "-m", "gpu", "-q", "--timeout", "300"]
    command = [sys.executable, "-m", "pytest", *plugin, *selection]
    return subprocess.run(
        command, cwd=root, env=about, capture_output=True, encoding="utf-8", timeout=seconds
    )


@pytest.mark.slow
def test_the_device_obeys_cudas_laws_and_tables_theirs():
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


@pytest.mark.timeout(0)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in QUICK_MUTATIONS else pytest.mark.soak)
        for name in MUTATIONS
    ],
)
def test_a_wait_that_is_taken_out_is_missed(name: str, tmp_path: Path):
    mutation = MUTATIONS[name]
    for part in ("storage", "tasks", "tests"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    file = tmp_path / "storage/tables" / mutation.file
    text = file.read_text(encoding="utf-8")
    assert text.count(mutation.line) == 1, (
        f"{mutation.file} has {text.count(mutation.line)} of {mutation.line!r}"
    )
    file.write_text(text.replace(mutation.line, mutation.becomes), encoding="utf-8")
    ran = simulate(TABLES, "-x", "-k", mutation.caught_by, rounds=20, root=tmp_path)
    missed = "FAILED" in ran.stdout or "Fatal Python error" in ran.stderr  # a kernel reads where nothing is
    assert ran.returncode and missed, ran.stdout[-4000:] + ran.stderr[-2000:]
