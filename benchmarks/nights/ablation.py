"""The full ablation: 13 blocks, three seeds, five folds, preset laptop, the UK guide; and a second run with
one more block.

As a user starts it, on the cores of this machine. Seconds on the clock, and CPU seconds of all its processes
divided by the cores, which is what an idle machine would need at least.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.claims import SAMPLE, Claim, guides, run
from tasks.pool import cores

BLOCKS = (
    *("scaling", "context", "n-grams", "sentence", "negatives", "margin", "objective", "encoder", "rule"),
    *("memory", "tokenizer", "clusterer", "augmentation"),
)
MORE = "hour"


class Run(NamedTuple):
    """Seconds on the clock, CPU seconds, trials that were computed, and trials in all."""

    wall: float
    cpu: float
    computed: int
    trials: int


def measure_ablation(quick: bool) -> Sequence[Claim]:
    """All claims of this file."""
    feeds, blocks = ([SAMPLE], BLOCKS[:3]) if quick else (guides("UK1"), BLOCKS)
    size = ("--preset", "smoke", "--seeds", "1", "--folds", "2") if quick else ()
    own = 2 if quick else 15  # trials of a block
    with tempfile.TemporaryDirectory() as folder:
        first = run_ablation(Path(folder) / "home", feeds, blocks, size)
        second = run_ablation(Path(folder) / "home", feeds, (*blocks, MORE), size)
    return [
        Claim(name=f"{len(blocks)} blocks, minutes", value=first.wall / 60, aim=15, better="less"),
        Claim(name="CPU minutes over cores", value=first.cpu / cores() / 60, aim=15, better="less"),
        Claim(name="CPU seconds a trial", value=first.cpu / first.trials, better=None),
        Claim(name="one more block, minutes", value=second.wall / 60, better=None),
        Claim(
            name="trials that the second run computed beside the new block's",
            value=second.computed - own,
            aim=0,
            better="less",
        ),
    ]


def run_ablation(home: Path, feeds: Sequence[Path], blocks: Sequence[str], size: Sequence[str] = ()) -> Run:
    """One run of the command."""
    command = [sys.executable, "-m", "flows", "ablate", "--home", str(home), "--feed", *map(str, feeds)]
    before, started = os.times(), time.perf_counter()
    done = subprocess.run(
        [*command, "--blocks", *blocks, *size], capture_output=True, encoding="utf-8", check=False
    )
    wall, after = time.perf_counter() - started, os.times()
    if done.returncode:
        sys.exit(f"the ablation ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    ended = [line.split() for line in done.stdout.splitlines() if "/" in line and " s  " in line]
    computed = sum(line[-1] == "done" for line in ended)
    kept = sum("unchanged:" in line for line in ended)
    return Run(wall, cpu, computed, computed + kept)


if __name__ == "__main__":
    sys.exit(run(measure_ablation, __doc__ or ""))
