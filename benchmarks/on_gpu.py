"""Runs all measurements that need a GPU: ``python -m benchmarks.on_gpu --out DIR --seconds 540``.

Each result is appended to DIR/measured.jsonl immediately, so none is lost at a time limit. A measurement that
does not fit into the remaining time is skipped; an exception is recorded with its traceback, and the next
measurement begins. Needs torch, NumPy and safetensors, and uses CuPy and pytest if they are installed.
docs/on_gpu.md explains the lines.
"""

import argparse
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.claims import Claim

PARTS = ("facts", "tests", "moves", "steps", "profile", "night")
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
    end, failed = time.monotonic() + seconds, []
    with file.open("a", encoding="utf-8") as out:

        def append(measurement: Measurement, line: Line) -> None:
            text = json.dumps(
                {"part": measurement.part, "measurement": measurement.name, **line}, default=str
            )
            out.write(text + "\n")
            out.flush()
            print(text, flush=True)

        for own in measurements:
            begun = time.monotonic()
            if own.seconds > end - begun:
                append(
                    own, {"skipped": f"needs about {own.seconds:.0f} s, {max(0, end - begun):.0f} are left"}
                )
                continue
            try:
                for line in own.run(end - begun):
                    append(own, line.row() if isinstance(line, Claim) else line)
                    if time.monotonic() > end:
                        append(own, {"stopped": f"the {seconds:.0f} s are over"})
                        break
                else:
                    append(own, {"took_seconds": round(time.monotonic() - begun, 2)})
            except Exception:
                append(own, {"error": traceback.format_exc()})
                failed.append(own.name)
    return failed


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 2 without a GPU, 1 if a measurement raised an exception, else 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.on_gpu", description=__doc__)
    parser.add_argument(
        "--out", type=Path, required=True, help="folder; lines are appended to measured.jsonl"
    )
    parser.add_argument("--seconds", type=float, default=540, help="for all parts together (540)")
    parser.add_argument("--part", choices=PARTS, help="only this part")
    options = parser.parse_args(arguments)
    import torch

    if not torch.cuda.is_available():
        print("benchmarks.on_gpu needs a GPU: torch sees no CUDA device", file=sys.stderr)
        return 2
    begun = time.monotonic()
    from benchmarks.offload.measurements import measurements

    options.out.mkdir(parents=True, exist_ok=True)
    chosen = [
        measurement for measurement in measurements(options.out) if options.part in (None, measurement.part)
    ]
    left = options.seconds - (time.monotonic() - begun)
    return 1 if measure(chosen, options.out / "measured.jsonl", left) else 0


if __name__ == "__main__":
    sys.exit(main())
