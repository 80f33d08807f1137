"""Measures tables on a GPU: ``python -m benchmarks.on_gpu --out DIR --limit 240``.

Without ``--part``, it measures the decisive figures: the machine, the tests of the tables, one transfer, and
steps over 10 M rows of 128, offloaded and resident. Each line is appended to DIR/measured.jsonl immediately,
and the process ends after ``--limit`` seconds, also within a measurement. A measurement that does not fit
into the remaining time is skipped; an exception is recorded with its traceback, and the next measurement
begins. Needs torch, NumPy, safetensors and pyarrow, and uses CuPy and pytest if they are installed.
docs/on_gpu.md explains the lines.
"""

import argparse
import faulthandler
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.claims import Claim

PARTS = ("decisive", "moves", "huge", "steps", "night")
FILE = "measured.jsonl"
SOFT = 0.95  # share of the limit after which a measurement stops at its next line
Line = Mapping[str, Any]


@dataclass(frozen=True)
class Measurement:
    """A measurement of a part; ``seconds`` is its estimated duration, ``run`` gets the remaining seconds."""

    part: str
    name: str
    seconds: float
    run: Callable[[float], Iterator[Claim | Line]]


def measure(measurements: Sequence[Measurement], file: Path, seconds: float) -> list[str]:
    """Runs all measurements that fit into ``seconds`` and appends their lines to ``file``.

    Args:
        measurements: Measurements, the most important first.
        file: File of JSON lines.
        seconds: Time limit of all measurements; a measurement in progress stops at its next line.

    Returns:
        The names of measurements that raised an exception.
    """
    start = time.monotonic()
    end, failed = start + seconds, []
    with file.open("a", encoding="utf-8") as out:

        def append(measurement: Measurement, line: Line) -> None:
            text = json.dumps(
                {"part": measurement.part, "measurement": measurement.name, **line}, default=str
            )
            out.write(text + "\n")
            out.flush()
            print(text, flush=True)

        for measurement in measurements:
            begun = time.monotonic()
            if measurement.seconds > end - begun:
                times = f"needs about {measurement.seconds:.0f} s, {max(0, end - begun):.0f} are left"
                append(measurement, {"skipped": times})
                continue
            append(measurement, {"began_after_seconds": round(begun - start, 2)})
            try:
                for line in measurement.run(end - begun):
                    append(measurement, line.row() if isinstance(line, Claim) else line)
                    if time.monotonic() > end:
                        append(measurement, {"stopped": f"the {seconds:.0f} s are over"})
                        break
                else:
                    append(measurement, {"took_seconds": round(time.monotonic() - begun, 2)})
            except Exception:
                append(measurement, {"error": traceback.format_exc()})
                failed.append(measurement.name)
    return failed


def run_command(
    prog: str,
    description: str,
    parts: Sequence[str],
    choose: Callable[[Path, str], Sequence[Measurement]],
    arguments: Sequence[str] | None = None,
) -> int:
    """Runs a command that measures on a GPU.

    Args:
        prog: Name of the module.
        description: For ``--help``.
        parts: Choices of ``--part``; the first is the default.
        choose: Returns the measurements for the folder of results and the part; imports what they need.
        arguments: Arguments of the command; None: those of the process.

    Returns:
        2 without a GPU, 1 if a measurement raised an exception, else 0. After the limit, the process ends
        with 1 and the tracebacks of its threads.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {prog}", description=description)
    parser.add_argument("--out", type=Path, required=True, help=f"folder; lines are appended to {FILE}")
    parser.add_argument("--limit", type=float, default=240, help="seconds until the process ends (240)")
    parser.add_argument("--part", choices=parts, default=parts[0], help=f"what to measure ({parts[0]})")
    options = parser.parse_args(arguments)
    begun = time.monotonic()
    # A thread without Python code, because a call into a hanging driver may keep the interpreter's lock.
    faulthandler.dump_traceback_later(options.limit, exit=True, file=2)
    try:
        import torch

        if not torch.cuda.is_available():
            print(f"{prog} needs a GPU: torch sees no CUDA device", file=sys.stderr)
            return 2
        options.out.mkdir(parents=True, exist_ok=True)
        measurements = choose(options.out, options.part)
        left = SOFT * options.limit - (time.monotonic() - begun)
        return 1 if measure(measurements, options.out / FILE, left) else 0
    finally:
        faulthandler.cancel_dump_traceback_later()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; see ``run_command``."""

    def choose(out: Path, part: str) -> list[Measurement]:
        from benchmarks.offload.measurements import measurements

        return [measurement for measurement in measurements(out) if measurement.part == part]

    return run_command("benchmarks.on_gpu", __doc__ or "", PARTS, choose, arguments)


if __name__ == "__main__":
    sys.exit(main())
