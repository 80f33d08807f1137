"""Defines the command line and the output of every benchmark: ``python -m benchmarks.FOLDER.NAME [--quick]``.

The other options are ``--full`` (large sizes) and ``--json``. A row of the output has a name, our value, the
rival and its value from the same run, the ratio, the target (aim), and whether the target was met. The ratio
is our value divided by the rival's; the aim says whether more or less is better.
"""

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "sample" / "guide.xml.gz"  # the guide of --quick


@dataclass(frozen=True)
class Claim:
    """One measured claim.

    Attributes:
        name: What was measured, with its unit.
        value: Our value.
        rival: Name of the rival; "" if the target applies to our value.
        rival_value: The rival's value, from the same run.
        aim: Target of the ratio if there is a rival, otherwise of the value.
        better: Whether more or less is better; None for a figure without a target.
        interval: 95 % interval of our value, if computed.
        rival_interval: 95 % interval of the rival's value.
    """

    name: str
    value: float
    rival: str = ""
    rival_value: float | None = None
    _: KW_ONLY
    aim: float | None = None
    better: Literal["more", "less"] | None = "more"
    interval: tuple[float, float] | None = None
    rival_interval: tuple[float, float] | None = None

    @property
    def ratio(self) -> float | None:
        """The ratio of our value to the rival's; None without a rival."""
        return self.value / self.rival_value if self.rival_value else None

    @property
    def met(self) -> bool | None:
        """Whether the target was reached; None without a target."""
        if self.aim is None or self.better is None:
            return None
        if self.rival and self.rival_value is None:
            return False
        # the value of a rival may be 0
        bar = self.aim * (self.rival_value if self.rival_value is not None else 1)
        return self.value >= bar if self.better == "more" else self.value <= bar

    def row(self) -> dict[str, Any]:
        """Returns all fields, the ratio and whether the target was met, for JSON."""
        return {**asdict(self), "ratio": self.ratio, "met": self.met}


def run(
    measure: Callable[[bool], Sequence[Claim]],
    description: str,
    measure_full: Callable[[], Sequence[Claim]] | None = None,
) -> int:
    """Runs the command of one benchmark; returns the exit code.

    Args:
        measure: Function that returns the claims; True selects small sizes.
        description: For ``--help``.
        measure_full: Function that returns the claims of large sizes; None if there are none.
    """
    parser = argparse.ArgumentParser(description=description)
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", action="store_true", help="under 60 s: smaller data, fewer repeats")
    if measure_full:
        sizes.add_argument(
            "--full", action="store_true", help="the heavy sizes alone: many minutes, much memory or disk"
        )
    parser.add_argument("--json", action="store_true", help="print JSON, for other programs")
    options = parser.parse_args()
    claims = measure_full() if measure_full and options.full else measure(options.quick)
    print(json.dumps([claim.row() for claim in claims], indent=1) if options.json else table(claims))
    return 0


def table(claims: Sequence[Claim]) -> str:
    """Formats claims as a Markdown table."""
    lines = [
        "| claim | ours | rival | theirs | ratio | aim | met |",
        "| --- | ---: | --- | ---: | ---: | ---: | --- |",
    ]
    for claim in claims:
        sign = {"more": "≥ ", "less": "≤ ", None: ""}[claim.better]
        ours, theirs = (
            _number(claim.value) + _bounds(claim.interval),
            _number(claim.rival_value) + _bounds(claim.rival_interval),
        )
        cells = [
            claim.name,
            ours,
            claim.rival or "–",
            theirs,
            _number(claim.ratio),
            "–" if claim.aim is None else sign + _number(claim.aim),
        ]
        lines.append(
            f"| {' | '.join(cells)} | {'–' if claim.met is None else 'yes' if claim.met else '**no**'} |"
        )
    return "\n".join(lines)


def guides(*names: str) -> list[Path]:
    """Returns the real guides below $GUIDESPACE_DATA whose file names contain the names, in this order.

    Raises:
        SystemExit: The variable is not set or a guide is missing.
    """
    folder = os.environ.get("GUIDESPACE_DATA")
    if not folder:
        sys.exit(
            "this benchmark reads real guides: set GUIDESPACE_DATA to a folder that holds guides/*.xml.gz"
        )
    paths = []
    for name in names:
        parts = (Path(folder) / part for part in ("guides", "described"))
        matches = [file for part in parts for file in sorted(part.glob(f"*{name}*.xml.gz"))]
        if not matches:
            sys.exit(f"no guide {name} in {folder}/guides")
        paths.append(matches[0])
    return paths


def is_installed(module: str, rival: str = "") -> bool:
    """Returns whether the Python module of a rival is installed; reports a missing one on standard error."""
    if importlib.util.find_spec(module):
        return True
    print(f"{rival or module} is not installed: its rows are left out", file=sys.stderr)
    return False


def machine() -> str:
    """Returns a short description of this machine for the page of results."""
    model = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    memory = next(
        (int(line.split()[1]) / 2**20 for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0
    )
    python = f"Python {platform.python_version()}"
    return f"{os.cpu_count()} cores ({model}), {memory:.0f} GiB, {python}, {platform.system()}"


def commit() -> str:
    """Returns the current commit, and whether files other than the page of results differ from it."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], capture_output=True, encoding="utf-8", cwd=ROOT, check=False
        ).stdout.strip()

    dirty = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!benchmarks/README.md")
    return (git("describe", "--always") or "unknown") + ("-dirty" if dirty else "")


def _lines(file: str) -> list[str]:
    try:
        return Path(file).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def _bounds(interval: Sequence[float] | None) -> str:
    return "" if interval is None else f" [{_number(interval[0])}, {_number(interval[1])}]"


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
