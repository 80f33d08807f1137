"""Profiles what was slow on a GPU: ``python -m benchmarks.profile_on_gpu --out DIR --limit 240``.

Reads the decisive figures in DIR/measured.jsonl and profiles those that missed their target: transfers by
grid size, and for an optimizer the times of planner, transfers and step alone, and a trace of 20 steps. If
all targets were met, it profiles the optimizer with the lowest ratio. Lines are appended to
DIR/measured.jsonl as by ``benchmarks.on_gpu``. docs/on_gpu.md explains the lines.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.on_gpu import FILE, Measurement, run_command

OPTIMIZERS = ("rowwise_adagrad", "adam")


def read_lines(out: Path) -> list[dict[str, Any]]:
    """Returns the lines of all measurements so far."""
    file = out / FILE
    return (
        [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
    )


def slow_parts(lines: Iterable[dict[str, Any]]) -> list[str]:
    """Returns what missed its target in the decisive figures: "transfer" and names of optimizers.

    An optimizer without figures counts as slow. If nothing was slow, returns the optimizer with the lowest
    ratio.
    """
    latest = {line["name"]: line for line in lines if line["part"] == "decisive" and line.get("aim")}
    gathers = [line for name, line in latest.items() if " gather, " in name]
    steps = {
        optimizer: line
        for optimizer in OPTIMIZERS
        for name, line in latest.items()
        if name.startswith(f"{optimizer},")
    }
    slow = ["transfer"] if any(line["met"] is False for line in gathers) else []
    slow += [
        optimizer for optimizer in OPTIMIZERS if optimizer not in steps or steps[optimizer]["met"] is False
    ]
    return slow or [min(steps, key=lambda optimizer: steps[optimizer]["ratio"])]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; see ``run_command``."""

    def choose(out: Path, part: str) -> list[Measurement]:
        from benchmarks.offload.profiles import profiles

        slow = slow_parts(read_lines(out)) if part == "slow" else [part]
        return profiles(out, slow)

    parts = ("slow", "transfer", *OPTIMIZERS)
    return run_command("benchmarks.profile_on_gpu", __doc__ or "", parts, choose, arguments)


if __name__ == "__main__":
    sys.exit(main())
