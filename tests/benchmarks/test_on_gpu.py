"""The command that measures on a GPU: time limits, errors and recorded lines."""

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
from benchmarks.offload.libraries import fbgemm, train_library
from benchmarks.offload.steps import train
from benchmarks.on_gpu import PARTS, Measurement, main, measure
from benchmarks.profile_on_gpu import slow_parts
from benchmarks.record_gpu import sections
from tasks.optimizers import RowwiseAdagrad

ROOT = Path(__file__).parents[2]
SIMULATED = """
import sys
from tests.device.plugin import install
install()
from tests.device.streams import GPU
GPU.reset(1)
from tests.device.tensors import Simulated
from benchmarks import on_gpu, profile_on_gpu
from benchmarks.offload import gpu, measurements, profiles, transfers
transfers.COPIED, transfers.MOVED, transfers.HELD = 1 << 16, 256, (1000, 2000)
gpu.BATCHES, gpu.REPEATS, gpu.RULED = 8, 2, (200, 60, 3)
profiles.TRACED = profiles.TRACED[:1]  # this torch cannot trace a GPU
gpu.Contest.sparse_adam = lambda self, tokens: iter(())  # sparse tensors: the test below
sizes = {"ROWS": 3000, "TOKENS": 240, "MANY_TOKENS": 480, "TITLES": 200, "SEARCHED": 300}
sizes |= {"HUGE_SHARE": 0.002, "BATCHES": 8, "REPEATS": 2}
for name, size in sizes.items():
    assert hasattr(measurements, name)
    setattr(measurements, name, size)
out, limit, *parts = sys.argv[1:]
with Simulated():
    codes = [
        (profile_on_gpu if part == "slow" else on_gpu).main(["--out", out, "--limit", limit, "--part", part])
        for part in parts
    ]
sys.exit(max(codes))
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
    assert [(line["name"], line["ratio"], line["met"]) for line in seen[1:]] == [("first", 2.0, True)]
    fields = [set(line) - {"part", "measurement"} for line in lines(file)]
    assert fields[0] == {"began_after_seconds"} and fields[2:] == [{"second"}, {"took_seconds"}]
    assert measure([Measurement("moves", "again", 0, lambda left: iter([{}]))], file, 60) == []
    assert len(lines(file)) == 7  # appended


def test_errors_of_a_measurement_are_recorded_and_the_next_one_runs(tmp_path: Path):
    def broken(left):
        yield {"before": 1}
        raise RuntimeError("no kernel image")

    made = [
        Measurement("moves", "broken", 0, broken),
        Measurement("steps", "next", 0, lambda left: iter([{"after": 1}])),
    ]
    assert measure(made, tmp_path / "lines", 60) == ["broken"]
    _, before, error, _, after, _ = lines(tmp_path / "lines")
    assert before["before"] == after["after"] == 1
    assert "RuntimeError: no kernel image" in error["error"] and error["measurement"] == "broken"


def test_measurements_without_enough_time_are_skipped_and_slow_ones_stopped(tmp_path: Path):
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
    assert "stopped" in found[-2] and 1 <= len(found) - 4 <= 5
    assert found[-1]["measurement"] == "late" and "skipped" in found[-1]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_the_error_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == "benchmarks.on_gpu needs a GPU: torch sees no CUDA device\n"
    assert not (tmp_path / "out").exists()


def rehearse(out: Path, limit: int, *parts: str) -> list[dict]:
    """Runs the parts on the simulated device with small tables; the lines that they wrote."""
    tests = "-p tests.device.plugin -k 'there_and_back or stale_control' -W ignore"
    about = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTEST_ADDOPTS": tests}
    command = [sys.executable, "-c", SIMULATED, str(out), str(limit), *parts]
    done = subprocess.run(
        command, cwd=ROOT, env=about, capture_output=True, encoding="utf-8", timeout=280, check=False
    )
    made = lines(out / "measured.jsonl")
    assert done.returncode == 0, [line for line in made if "error" in line] or done.stderr[-2000:]
    assert not [line for line in made if {"skipped", "stopped", "error"} & {*line}]
    differ = [line["value"] for line in made if "differ" in line.get("name", "")]
    assert differ and not any(differ)
    return made


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_the_decisive_figures_and_the_profile_on_the_simulated_device(tmp_path: Path):
    """Both commands as they are run on a GPU, within their limit."""
    made = rehearse(tmp_path, 240, "decisive", "slow")
    found = {key: value for line in made for key, value in line.items()}
    assert found["versions"]["torch"] and found["CanUseHostPointerForRegisteredMem"] == 1
    assert found["kernels"] == "compiled, and moved a record there and back"
    assert [line["outcome"] for line in made if "test" in line] == ["passed"] * 3
    named = {line["name"] for line in made if "name" in line}
    assert "link, host to device, GB/s" in named and "uva gather, 512 B of 1,000, random, GB/s" in named
    ratios = [line for line in made if line.get("name", "").endswith("240 tokens, 5 % cached, tokens/s")]
    assert [line["aim"] for line in ratios] == [None, None]  # the target is for 98,304 tokens
    took = [(line["part"], line["measurement"]) for line in made if "took_seconds" in line]
    assert took[-2:] == [("profile", "rowwise_adagrad"), ("profile", "adam")] and len(took) == 9
    times = {"planner_ms", "transfers_alone_ms", "offloaded_step_ms", "resident_step_ms"}
    assert times < {key for line in made if line["part"] == "profile" for key in line}
    assert {file.name for file in tmp_path.glob("*.json")} == {"rowwise_adagrad.json", "adam.json"}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_the_other_parts_run_on_the_simulated_device(tmp_path: Path):
    made = rehearse(tmp_path, 100_000, *PARTS[1:])
    assert {line["part"] for line in made if "took_seconds" in line} == set(PARTS[1:])
    assert len([line for line in made if "differ" in line.get("name", "")]) > 10


def decisive(name: str, ratio: float, aim: float | None) -> dict:
    claim = Claim(f"{name}, 10 rows, 5 % cached, tokens/s", ratio, "resident", 1.0, aim=aim)
    return {"part": "decisive", "measurement": "steps", **claim.row()}


def test_the_profile_is_of_what_missed_its_target():
    gather = Claim("uva gather, 512 B of 1,000, random, GB/s", 0.5, "one copy", 1.0, aim=0.8).row()
    slow, fast = decisive("adam", 0.5, 0.9), decisive("rowwise_adagrad", 0.97, 0.95)
    assert slow_parts([slow, fast]) == ["adam"]
    assert slow_parts([{"part": "decisive", **gather}, fast]) == ["transfer", "adam"]  # adam: no figure
    assert slow_parts([slow, fast, decisive("adam", 0.95, 0.9)]) == ["adam"]  # all met: the lowest ratio
    assert slow_parts([{"part": "decisive", "began_after_seconds": 1}]) == ["rowwise_adagrad", "adam"]


def test_measurements_of_a_gpu_become_sections_of_the_history():
    facts = {"name": "H100", "driver_version": "580", "cuda": "13.0", "python": "3.12.3", "cpus": 16}
    facts |= {"pcie.link.gen.current": "5", "pcie.link.width.current": "16", "memory_bytes": 2**37}
    lines = [
        {"part": "decisive", "measurement": "facts", "versions": {"torch": "2.11.0"}, **facts},
        {"part": "decisive", "measurement": "link", "took_seconds": 60},
        {
            "part": "steps",
            "measurement": "adam",
            **Claim("adam, tokens/s", 2.0, "resident", 4.0, aim=0.9).row(),
        },
        {"part": "steps", "measurement": "adam", **Claim("uva gather, p90, GB/s", 2.0).row()},
        {"part": "steps", "measurement": "adam", "took_seconds": 30},
    ]
    (section,) = sections(lines, "0123456", "2026-11-27 14:35 UTC")
    assert (section.section, section.minutes, section.commit) == ("on_gpu, steps", 0.5, "0123456")
    assert [(claim.name, claim.ratio, claim.met) for claim in section.claims] == [
        ("adam, tokens/s", 0.5, False)
    ]
    assert section.machine.startswith(
        "H100, PCIe 5 x16, driver 580, torch 2.11.0, CUDA 13.0, 16 cores, 128 GiB"
    )
    with pytest.raises(ValueError, match="measure the part decisive"):
        sections(lines[1:], "0123456", "2026-11-27 14:35 UTC")


HANGING = """
import sys, time, torch
from pathlib import Path
from benchmarks.on_gpu import Measurement, run_command
def hangs(left):
    yield {"before": 1}
    time.sleep(100)
torch.cuda.is_available = lambda: True
made = [Measurement("decisive", "hangs", 1, hangs)]
run_command("it", "", ["decisive"], lambda out, part: made, ["--out", sys.argv[1], "--limit", "2"])
"""


@pytest.mark.slow
def test_the_process_ends_at_its_limit_within_a_measurement_and_keeps_the_lines(tmp_path: Path):
    command = [sys.executable, "-c", HANGING, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert done.returncode == 1 and "Timeout (0:00:02)!" in done.stderr and "in hangs" in done.stderr
    assert lines(tmp_path / "measured.jsonl")[-1]["before"] == 1


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
    theirs = train_library(fbgemm(contest.start, rule), bags).losses
    ours = train(gpu._resident(contest.start, rule), rule, bags, device).losses  # pyright: ignore[reportPrivateUsage]
    np.testing.assert_allclose(theirs[:2], ours[:2], rtol=0.02)
    assert theirs[-1] < theirs[0] and ours[-1] < ours[0]
