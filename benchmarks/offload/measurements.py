"""The measurements of benchmarks/on_gpu.py, in order."""

import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from benchmarks.claims import ROOT, Claim
from benchmarks.offload import transfers
from benchmarks.offload.gpu import BATCHES, REPEATS, Contest, every_rule
from benchmarks.offload.steps import DIM, train
from benchmarks.offload.transfers import GPU, both_at_once, gathers, link
from benchmarks.on_gpu import Line, Measurement
from benchmarks.training.synthetic import make_synthetic_corpus
from storage.tables import Offloaded, Section, check_kernels, random_rows
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
ROWS, TOKENS, MANY_TOKENS = 10_000_000, 98_304, 786_432
HUGE_SHARE = 1.1  # size of the largest table in units of the GPU's memory
TEST_SECONDS = 60.0
TESTS = (  # the GPU tests that need no package of the nightly run
    "tests/storage/tables/test_gpu.py",
    "tests/tasks/neighbours/test_on_gpu.py",
    "tests/tasks/loading/test_delivery.py",
    "tests/tasks/recurrent",
    "tests/tasks/train/test_leave_one_out.py",
)
OUTCOME = re.compile(r"\S+::(\S.*?) (PASSED|FAILED|ERROR|SKIPPED)")  # of pytest -v
TITLES = 500_000  # titles of the corpus of the part night
SEARCHED = 100_000  # titles in the search for neighbours


def measurements(out: Path) -> list[Measurement]:
    """Returns all measurements, the most important first; seconds are estimates for a GPU on PCIe 5."""
    has_cupy = importlib.util.find_spec("cupy") is not None
    contest, made = Contest(ROWS), []
    rules = RowwiseAdagrad(), Adam()

    def add(part: str, name: str, seconds: float, run: Callable[..., Any], *arguments: Any) -> None:
        made.append(Measurement(part, name, seconds, lambda left: run(*arguments)))

    add("decisive", "facts", 5, facts)
    made.append(Measurement("decisive", "GPU tests", 10, tests))
    add("decisive", "link", 5, link)
    add("decisive", "one transfer", 12, gathers, has_cupy, transfers.HELD[:1], (512, 1536))
    for rule, seconds in zip(rules, (15, 20), strict=True):
        add("decisive", f"{rule.name}, 5 %", seconds, contest.ours, rule, TOKENS, 0.05)
    add("moves", "link, both directions at once", 2, both_at_once)
    add("moves", "rules", 6, every_rule)
    add("moves", "gathers", 30, gathers, has_cupy, transfers.HELD, (256, 512, 1536))
    add("huge", "a table larger than the GPU", 60, huge)
    for rule in rules:
        add("steps", f"{rule.name}, {MANY_TOKENS:,} tokens", 30, contest.ours, rule, MANY_TOKENS, 0.05)
    add("steps", "Adam, SpeedTorch's way", 20, contest.speedtorch, TOKENS)
    add("steps", "Adam, SparseAdam", 10, contest.sparse_adam, TOKENS)
    if importlib.util.find_spec("fbgemm_gpu"):
        for rule in rules:
            add("steps", f"{rule.name}, FBGEMM", 60, contest.fbgemm, rule, TOKENS)
    for rule in rules:
        add("steps", f"{rule.name}, 5 %, unpinned", 20, contest.ours, rule, TOKENS, 0.05, "staged")
        for share in (0.01, 0.5, 0.02, 0.1):
            add("steps", f"{rule.name}, {100 * share:g} %", 20, contest.ours, rule, TOKENS, share)
    add("night", f"{TITLES:,} titles", 5, night)
    add("night", "nearest titles", 30, neighbours)
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


def tests(left: float) -> Iterator[Line]:
    """Runs TESTS, for at most TEST_SECONDS; yields a line per test.

    They need no fixture of the project except for those of the tables.
    """
    if importlib.util.find_spec("pytest") is None:
        yield {"skipped": "pytest is not installed"}
        return
    command = [sys.executable, "-m", "pytest", "-v", "-m", "gpu", "--tb=short", "--maxfail=5", "-W", "ignore"]
    command += ["-c", os.devnull, f"--rootdir={ROOT}", "--import-mode=importlib", "-p", "no:cacheprovider"]
    command += ["--noconftest", "-p", "tests.storage.tables.conftest", *TESTS]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "encoding": "utf-8"}
    with subprocess.Popen(command, cwd=ROOT, env=environment, **options) as process:
        end = threading.Timer(min(left, TEST_SECONDS), process.kill)
        end.start()
        assert process.stdout is not None
        output = []
        for line in process.stdout:
            output.append(line)
            if match := OUTCOME.match(line):
                yield {"test": match[1], "outcome": match[2].lower()}
        end.cancel()
    if process.returncode:
        yield {"exit_code": process.returncode, "output": "".join(output)[-6000:]}
        raise subprocess.CalledProcessError(process.returncode, command)


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
    """Trains a table with the state of Adam that is larger than the memory of the GPU, 5 % cached.

    All pieces of the initial rows are the same, because drawing them would take minutes. The losses of two
    rounds with restarts of the loop show that training works; there is no resident table to compare with.
    """
    rule, total = Adam(), torch.cuda.mem_get_info()[1]
    rows = int(HUGE_SHARE * total / (3 * DIM * 4))
    need, free = rows * 3 * DIM * 4, os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if free < need * 1.1:
        yield {"skipped": f"needs {need / 1e9:.0f} GB of host memory, {free / 1e9:.0f} are free"}
        return
    piece = random_rows(2048, DIM, 0.1, 1).tensor()
    pieces = lambda: (piece[: min(2048, rows - first)] for first in range(0, rows, 2048))  # noqa: E731
    bags, begun = Contest(rows).bags(TOKENS), time.perf_counter()
    start = Section(torch.float32, (rows, DIM), pieces)
    table = Offloaded(start, rule, device=GPU, cache_rows=rows // 20, batch=bags[0].ids)
    built = time.perf_counter() - begun
    runs = [train(table, rule, bags * REPEATS, GPU, warm=BATCHES) for _ in range(2)]
    yield {"rows": rows, "table_bytes": need, "gpu_bytes": total, "build_seconds": round(built, 1)}
    yield {"transfer": type(table.storage.transfer).__name__, **table.statistics.last_batch()}
    yield {"first_losses": runs[0].losses[:3].tolist(), "last_losses": runs[1].losses[-3:].tolist()}
    name = f"adam, {rows:,} rows, {need / total:.2f} of the GPU's memory, {TOKENS:,} tokens, 5 % cached"
    yield Claim(f"{name}, tokens/s", TOKENS / runs[1].median, better=None)
