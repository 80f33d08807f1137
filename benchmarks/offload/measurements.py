"""The measurements of benchmarks/on_gpu.py, in order."""

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch
from xml.etree import ElementTree

import torch

from benchmarks.claims import ROOT, Claim
from benchmarks.offload.gpu import Contest, every_rule
from benchmarks.offload.steps import step
from benchmarks.offload.transfers import GPU, both_at_once, gathers, grids, link
from benchmarks.on_gpu import Line, Measurement
from benchmarks.training.synthetic import make_synthetic_corpus
from storage.tables import Offloaded, check_kernels
from tasks.neighbours import similarity
from tasks.neighbours.similarity import top_neighbours
from tasks.optimizers import Adam, RowwiseAdagrad
from tasks.train.loop import Training
from tasks.train.objectives import Label
from tasks.train.settings import TrainSettings

PACKAGES = (
    "torch",
    "numpy",
    "safetensors",
    "pyarrow",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "fbgemm-gpu",
    "pytest",
)
QUERIED = (
    "name",
    "driver_version",
    "memory.total",
    "pcie.link.gen.current",
    "pcie.link.gen.max",
    "pcie.link.width.current",
    "clocks.max.sm",
)
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
ROWS, HUGE_ROWS, TOKENS, MANY_TOKENS = 10_000_000, 100_000_000, 98_304, 786_432
TITLES = 500_000  # titles of the corpus of the part night
TRACED = torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA
SEARCHED = 100_000  # titles in the search for neighbours


def measurements(out: Path) -> list[Measurement]:
    """Returns all measurements, the most important first; seconds are estimates for a GPU on PCIe 5."""
    has_cupy = importlib.util.find_spec("cupy") is not None
    contest = Contest(ROWS)
    made = [
        Measurement("facts", "facts", 5, lambda left: facts()),
        Measurement("tests", "pytest -m gpu", 60, partial(tests, out)),
        Measurement("moves", "link", 5, lambda left: link()),
        Measurement("moves", "link, both directions at once", 5, lambda left: both_at_once()),
        Measurement("moves", "rules", 20, lambda left: every_rule()),
        *([Measurement("moves", "by grid size", 20, lambda left: grids())] if has_cupy else []),
        Measurement("moves", "gathers", 60, lambda left: gathers(has_cupy)),
    ]
    for rule in (RowwiseAdagrad(), Adam()):
        claims = partial(contest.ours, rule)
        name = rule.name
        made.append(
            Measurement("steps", f"{name}, 5 %", 60, lambda left, claims=claims: claims(TOKENS, 0.05))
        )
        made.append(
            Measurement(
                "steps",
                f"{name}, 5 %, unpinned",
                45,
                lambda left, claims=claims: claims(TOKENS, 0.05, "staged"),
            )
        )
    made.append(Measurement("profile", "20 steps", 40, lambda left: profile(out, contest)))
    made.append(Measurement("night", f"{TITLES:,} titles", 60, lambda left: night()))
    made.append(Measurement("night", "nearest titles", 40, lambda left: neighbours()))
    for rule in (RowwiseAdagrad(), Adam()):
        claims = partial(contest.ours, rule)
        for share in (0.01, 0.02, 0.1, 0.5):
            name = f"{rule.name}, {100 * share:g} %"
            made.append(
                Measurement("steps", name, 45, lambda left, claims=claims, share=share: claims(TOKENS, share))
            )
        name = f"{rule.name}, {MANY_TOKENS:,} tokens"
        made.append(Measurement("steps", name, 90, lambda left, claims=claims: claims(MANY_TOKENS, 0.05)))
    made.append(Measurement("steps", "Adam, SpeedTorch's way", 60, lambda left: contest.speedtorch(TOKENS)))
    made.append(Measurement("steps", "Adam, SparseAdam", 30, lambda left: contest.sparse_adam(TOKENS)))
    if importlib.util.find_spec("fbgemm_gpu"):
        for rule in (RowwiseAdagrad(), Adam()):
            claims = partial(contest.fbgemm, rule)
            made.append(
                Measurement("steps", f"{rule.name}, FBGEMM", 60, lambda left, claims=claims: claims(TOKENS))
            )
    made.append(Measurement("steps", f"{HUGE_ROWS:,} rows", 240, lambda left: huge()))
    return made


def facts() -> Iterator[Line]:
    """Yields versions, driver, link, huge pages, and whether the kernels for unified addressing work."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    yield {"python": platform.python_version(), "cuda": torch.version.cuda, "versions": versions}
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    huge_pages = HUGE_PAGES.read_text(encoding="utf-8").strip() if HUGE_PAGES.exists() else None
    yield {
        "kernel": platform.release(),
        "cpus": os.cpu_count(),
        "memory_bytes": memory,
        "huge_pages": huge_pages,
    }
    yield {"multiprocessors": torch.cuda.get_device_properties(0).multi_processor_count}
    if shutil.which("nvidia-smi"):
        command = ["nvidia-smi", "--id=0", f"--query-gpu={','.join(QUERIED)}", "--format=csv,noheader"]
        output = subprocess.run(command, capture_output=True, encoding="utf-8", check=True, timeout=30).stdout
        yield dict(zip(QUERIED, output.strip().split(", "), strict=True))
    if importlib.util.find_spec("cupy"):
        import cupy  # pyright: ignore[reportMissingImports]

        attribute = "CanUseHostPointerForRegisteredMem"
        yield {attribute: cupy.cuda.Device(0).attributes.get(attribute)}
        check_kernels(GPU)
        yield {"kernels": "compiled, and moved a record there and back"}


def tests(out: Path, left: float) -> Iterator[Line]:
    """Runs the tests that need a GPU; yields a line per test.

    Runs all of them if the packages of the extra dev are installed, otherwise only the tests of the tables,
    which need no fixture of the project.
    """
    if importlib.util.find_spec("pytest") is None:
        yield {"skipped": "pytest is not installed"}
        return
    junit = out / "tests.xml"
    junit.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider"]
    command.append(f"--junitxml={junit.absolute()}")
    if not all(map(importlib.util.find_spec, ("prefect", "duckdb", "jaxtyping", "pytest_timeout"))):
        command += ["-c", os.devnull, f"--rootdir={ROOT}", "--noconftest", "--import-mode=importlib"]
        command.append("tests/storage/tables/test_gpu.py")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=left, check=False)
    if done.returncode:
        yield {"exit_code": done.returncode, "output": (done.stdout + done.stderr)[-3000:]}
    for case in ElementTree.parse(junit).iter("testcase") if junit.exists() else ():
        problem = next((child for child in case if child.tag in ("failure", "error", "skipped")), None)
        details = {} if problem is None else {"message": problem.get("message", "")[:500]}
        outcome = "passed" if problem is None else problem.tag
        yield {"test": case.get("name"), "outcome": outcome, "seconds": float(case.get("time", 0)), **details}
    done.check_returncode()  # the command then ends with 1


def profile(out: Path, contest: Contest) -> Iterator[Line]:
    """Writes a trace of 20 steps with Adam and 5 % cached, for chrome://tracing or ui.perfetto.dev."""
    rule, bags = Adam(), contest.bags(TOKENS)
    table = Offloaded(contest.start, rule, device=GPU, cache_rows=contest.rows // 20)
    with torch.profiler.profile(activities=TRACED) as trace:
        for number, batch in enumerate(table.prefetch(bags[:20], lambda batch: batch.ids), start=1):
            step(table, rule, batch.to(GPU), number)
        torch.cuda.synchronize()
    trace.export_chrome_trace(str(out / "trace.json"))
    costly: list[Any] = sorted(trace.key_averages(), key=lambda event: -event.device_time_total)[:20]
    for event in costly:
        yield {
            "event": event.key,
            "calls": event.count,
            "device_ms": event.device_time_total / 1000,
            "cpu_ms": event.cpu_time_total / 1000,
        }


def night() -> Iterator[Line]:
    """Trains three epochs on a synthetic corpus with the settings of preset gpu; yields a line per epoch."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = make_synthetic_corpus(Path(folder) / "corpus", TITLES, seed=1)
        # the training of preset gpu (flows/settings.py, which needs Prefect), with fewer epochs
        objective = Label(batch_size=4096)
        settings = TrainSettings(dim=256, epochs=3, device="cuda", precision="auto", objective=objective)
        begun = time.perf_counter()
        for progress in Training(corpus, settings).run():
            if not progress.metrics:
                continue  # a message, not a measurement
            torch.cuda.synchronize()
            now = time.perf_counter()
            yield {"epoch": dict(progress.metrics), "titles_a_second": TITLES / (now - begun)}
            begun = now


def neighbours() -> Iterator[Claim]:
    """Compares the search for the 25 nearest titles by products on the GPU and on the CPU, with bit-equal
    results.
    """
    vectors = torch.nn.functional.normalize(torch.randn(SEARCHED, 128), dim=1).numpy()
    seconds, neighbours_by_limit = {}, {}
    for fewest in (1, sys.maxsize):
        with patch.object(similarity, "MIN_PAIRS", fewest):
            top_neighbours(vectors[:2000], vectors[:2000], 25)
            begun = time.perf_counter()
            neighbours_by_limit[fewest] = top_neighbours(vectors, vectors, 25, exclude_self=True)
            seconds[fewest] = time.perf_counter() - begun
    gpu, cpu = seconds.values()
    name = f"nearest 25 of {SEARCHED:,} titles"
    yield Claim(f"{name}, titles/s", SEARCHED / gpu, "CPU", SEARCHED / cpu, aim=1.3)
    differ = float(
        sum((one != other).sum() for one, other in zip(*neighbours_by_limit.values(), strict=True))
    )
    yield Claim(f"{name}, ids and cosines that differ", differ, aim=0, better="less")


def huge() -> Iterator[Claim | Line]:
    """Measures start and records of 100 million rows with row-wise Adagrad, if host memory is twice their
    size.
    """
    need = 2 * HUGE_ROWS * 128 * 4
    if (free := os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")) < need * 1.1:
        yield {"skipped": f"needs {need / 1e9:.0f} GB of host memory, {free / 1e9:.0f} are free"}
        return
    yield from Contest(HUGE_ROWS).ours(RowwiseAdagrad(), TOKENS, 0.05)
