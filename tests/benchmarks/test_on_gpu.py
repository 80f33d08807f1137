"""What the command that measures on a GPU does with its time."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.claims import Claim
from benchmarks.offload import gpu
from benchmarks.offload.steps import train
from benchmarks.on_gpu import PARTS, Measurement, main, measure
from tasks.optimizers import RowwiseAdagrad

ROOT = Path(__file__).parents[2]
SIMULATED = """
import sys
from tests.device.plugin import install
install()
from tests.device.streams import GPU
GPU.reset(1)
from tests.device.tensors import Simulated
from benchmarks.offload import gpu, measurements, transfers
from benchmarks.on_gpu import main
transfers.COPIED, transfers.MOVED, transfers.HELD = 1 << 16, 256, (1000, 2000)
gpu.BATCHES, gpu.RULED = 8, (200, 60, 3)
measurements.TRACED = measurements.TRACED[:1]  # this torch cannot trace a GPU
gpu.Contest.sparse_adam = lambda self, tokens: iter(())  # sparse tensors: the test below
sizes = {"ROWS": 3000, "HUGE_ROWS": 4000, "TOKENS": 240, "MANY_TOKENS": 480, "TITLES": 200, "SEARCHED": 300}
for name, size in sizes.items():
    assert hasattr(measurements, name)
    setattr(measurements, name, size)
with Simulated():
    sys.exit(main(["--out", sys.argv[1], "--seconds", "100000"]))
"""


def lines(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_lines_are_in_the_file_as_soon_as_they_are_measured(tmp_path: Path):
    file, seen = tmp_path / "measured.jsonl", []

    def run(left):
        yield Claim("first", 2.0, "other", 1.0, aim=1.5)
        seen.extend(lines(file))
        yield {"second": 2}

    assert measure([Measurement("moves", "own", 0, run)], file, 60) == []
    assert [(line["name"], line["ratio"], line["met"]) for line in seen] == [("first", 2.0, True)]
    assert [set(line) - {"part", "measurement"} for line in lines(file)[1:]] == [{"second"}, {"took_seconds"}]
    assert measure([Measurement("moves", "again", 0, lambda left: iter([{}]))], file, 60) == []
    assert len(lines(file)) == 5  # appended


def test_what_raises_is_written_down_and_the_next_goes_on(tmp_path: Path):
    def broken(left):
        yield {"before": 1}
        raise RuntimeError("no kernel image")

    made = [
        Measurement("moves", "broken", 0, broken),
        Measurement("steps", "next", 0, lambda left: iter([{"after": 1}])),
    ]
    assert measure(made, tmp_path / "lines", 60) == ["broken"]
    before, error, after, _ = lines(tmp_path / "lines")
    assert before["before"] == after["after"] == 1
    assert "RuntimeError: no kernel image" in error["error"] and error["measurement"] == "broken"


def test_what_does_not_fit_is_named_and_skipped_and_what_takes_too_long_is_stopped(tmp_path: Path):
    def slow(left):
        for number in range(100):
            time.sleep(0.1)
            yield {"number": number}

    made = [
        Measurement("steps", "large", 600, slow),
        Measurement("steps", "slow", 0.1, slow),
        Measurement("night", "late", 1, slow),
    ]
    assert measure(made, tmp_path / "lines", 0.5) == []
    found = lines(tmp_path / "lines")
    assert found[0]["measurement"] == "large" and "needs about 600 s" in found[0]["skipped"]
    assert "stopped" in found[-2] and 1 <= len(found) - 3 <= 5
    assert found[-1]["measurement"] == "late" and "skipped" in found[-1]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == "benchmarks.on_gpu needs a GPU: torch sees no CUDA device\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_every_part_runs_on_the_simulated_device(tmp_path: Path):
    """The command as it is, with small tables: its first run on a GPU must not end at a slip of the pen."""
    tests = "-p tests.device.plugin -k there_and_back tests/storage/tables/test_gpu.py"
    about = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTEST_ADDOPTS": tests}
    command = [sys.executable, "-c", SIMULATED, str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, env=about, capture_output=True, encoding="utf-8", timeout=280, check=False
    )
    made = lines(tmp_path / "measured.jsonl")
    assert done.returncode == 0, [line for line in made if "error" in line] or done.stderr[-2000:]
    found = {key: value for line in made for key, value in line.items()}
    assert found["versions"]["torch"] and found["CanUseHostPointerForRegisteredMem"] == 1
    assert found["kernels"] == "compiled, and moved a record there and back"
    assert {line["part"] for line in made if "took_seconds" in line} == set(PARTS)
    assert not [line for line in made if {"skipped", "stopped", "error"} & {*line}]
    assert {line["outcome"] for line in made if "test" in line} == {"passed"}
    differ = [line["value"] for line in made if "differ" in line.get("name", "")]
    assert len(differ) > 15 and not any(differ)
    assert (tmp_path / "trace.json").exists()


@pytest.fixture
def contest_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> gpu.Contest:
    monkeypatch.setattr(gpu, "GPU", torch.device("cpu"))
    monkeypatch.setattr(gpu, "BATCHES", 9)
    return gpu.Contest(300)


def test_sparse_adam_on_the_cpu(contest_on_the_cpu: gpu.Contest):
    """The simulated device has no sparse tensors."""
    (claim,) = contest_on_the_cpu.sparse_adam(120)
    assert claim.value > 0 and "SparseAdam" in claim.name


def test_fbgemm_on_the_cpu(contest_on_the_cpu: gpu.Contest):
    """It learns what our table learns: the losses of the first steps are alike, and fall."""
    pytest.importorskip("fbgemm_gpu", reason="needs fbgemm-gpu-cpu")
    contest, device, rule = contest_on_the_cpu, torch.device("cpu"), RowwiseAdagrad()
    (claim,) = contest.fbgemm(rule, 120)
    assert claim.value > 0 and "FBGEMM" in claim.name and rule.name in claim.name
    bags = contest.bags(120)
    theirs = gpu._fbgemm(contest.start, rule, bags, 0.05).losses  # pyright: ignore[reportPrivateUsage]
    ours = train(gpu._resident(contest.start, rule), rule, bags, device).losses  # pyright: ignore[reportPrivateUsage]
    np.testing.assert_allclose(theirs[:2], ours[:2], rtol=0.02)
    assert theirs[-1] < theirs[0] and ours[-1] < ours[0]
