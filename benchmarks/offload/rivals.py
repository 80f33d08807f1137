"""Offloaded embeddings beside tables of PyTorch, FBGEMM, TorchRec and PyTorch-BigGraph on the CPU.

Each process trains one table with the same initial rows, batches, optimizer and loss, on one thread (ours
prefetches in another). Rows are the medians of processes that take turns. Libraries that are not installed
are named; $GUIDESPACE_RIVALS is the interpreter of another environment that has them (docs/offload.md).
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence

from benchmarks import RIVAL
from benchmarks.claims import ROOT, Claim, run
from benchmarks.offload.libraries import LIBRARIES, RULES, Result
from benchmarks.offload.steps import DIM
from benchmarks.processes import THREADS

OURS = "ours, 5 % cached"
SIZES = 1_000_000, 98_304, 12  # rows, ids per step, steps
QUICK_SIZES = 50_000, 8192, 4


def measure_rivals(quick: bool) -> Sequence[Claim]:
    """Measures all claims of this file."""
    sizes, repeats = (QUICK_SIZES, 1) if quick else (SIZES, 3)
    claims = []
    for optimizer in RULES:
        names = [name for name, library in LIBRARIES.items() if optimizer in library.optimizers]
        results: dict[str, list[Result]] = {name: [] for name in names}
        for _ in range(repeats):
            for name in list(results):
                result = run_library(name, optimizer, sizes)
                if result is None:
                    del results[name]
                else:
                    results[name].append(result)
        claims += compare(optimizer, sizes, names, results)
    return claims


def run_library(name: str, optimizer: str, sizes: tuple[int, int, int]) -> Result | None:
    """Measures a library in a fresh process; None if it is not installed, with the reason on standard error.

    Raises:
        CalledProcessError: The process failed.
    """
    is_ours = name.startswith("ours")
    python = sys.executable if is_ours else os.environ.get("GUIDESPACE_RIVALS", sys.executable)
    rows, ids, steps = map(str, sizes)
    command = [python, "-W", "ignore", "-m", "benchmarks.offload.libraries", name, optimizer]
    command += ["--rows", rows, "--ids", ids, "--steps", steps]
    environment = {**os.environ, **dict.fromkeys(THREADS, "1")} | ({} if is_ours else {RIVAL: "1"})
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, encoding="utf-8", check=True
    )
    fields = json.loads(done.stdout.splitlines()[-1])
    if "missing" in fields:
        print(f"{name} is not installed ({python}): {fields['missing']}", file=sys.stderr)
        return None
    return Result(**fields)


def compare(
    optimizer: str,
    sizes: tuple[int, int, int],
    names: Sequence[str],
    results: Mapping[str, Sequence[Result]],
) -> list[Claim]:
    """Returns the claims of one optimizer; libraries without results are rivals without a value."""

    def median(name: str, field: str) -> float:
        return statistics.median(getattr(result, field) for result in results[name])

    rows, ids, _ = sizes
    claims = []
    for name in names:
        about = f"{optimizer}, {rows:,} × {DIM}, {ids:,} ids"
        if name == OURS:
            differ = f"{about}, values that differ from torch.optim, %"
            aim = None if optimizer == "rowwise_adagrad" else 0  # torch.optim lacks row-wise Adagrad
            claims.append(Claim(differ, median(OURS, "differing"), aim=aim, better="less"))
            continue
        if name not in results:
            speed = 1 / median(OURS, "seconds")
            claims.append(Claim(f"{about}, steps/s", speed, f"{name}: not installed"))
            continue
        rival = f"{name.removeprefix('ours, ')} {'' if 'ours' in name else results[name][0].version}".strip()
        values = {
            "steps/s": (1 / median(OURS, "seconds"), 1 / median(name, "seconds")),
            "CPU ms a step": tuple(1000 * median(one, "cpu_seconds") for one in (OURS, name)),
            "peak memory, MiB": tuple(median(one, "memory") for one in (OURS, name)),
            "values that differ from torch.optim, %": tuple(median(one, "differing") for one in (OURS, name)),
            "largest difference": tuple(median(one, "difference") for one in (OURS, name)),
        }
        claims += [
            Claim(f"{about}, {what}", ours, rival, theirs, better="more" if what == "steps/s" else "less")
            for what, (ours, theirs) in values.items()
        ]
    return claims


if __name__ == "__main__":
    sys.exit(run(measure_rivals, __doc__ or ""))
