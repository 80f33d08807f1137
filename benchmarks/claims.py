"""Defines the command line and the output of every benchmark: ``python -m benchmarks.FOLDER.NAME [--quick]``.

The other options are ``--full`` (large sizes) and ``--json``. A row of the output has a name, our value, the
rival and its value from the same run, the ratio, the target (aim), and the verdict. The ratio is our value
divided by the rival's; the aim says whether more or less is better.

Verdicts use exact numbers: "yes", "**no**"; "undecided", if the difference to the target is smaller than the
95 % error of both values; "loose target", if our value is more than ``LOOSE`` times better than the target,
which could hardly be missed. Targets of 0, and of 1 beside a rival, are never
loose.
"""

import argparse
import importlib.util
import json
import math
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "sample" / "guide.xml.gz"  # the guide of --quick
WRITTEN = ("*.md", "benchmarks/history.jsonl", "docs/figures.svg")  # do not influence a measurement
LOOSE = 3
Verdict = Literal["yes", "**no**", "undecided", "loose target"]


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
    def verdict(self) -> Verdict | None:
        """Whether the target was reached, as the module describes; None without a target."""
        if self.aim is None or self.better is None:
            return None
        if self.rival and self.rival_value is None:
            return "**no**"
        more = self.better == "more"
        bar = self.aim * (self.rival_value if self.rival_value is not None else 1)  # a rival may reach 0
        lead = self.value - bar if more else bar - self.value
        nearer = int((lead < 0) == more)  # the bound of our interval on the side of the target
        error = math.hypot(
            _margin(self.value, self.interval, nearer),
            self.aim * _margin(self.rival_value, self.rival_interval, 1 - nearer),
        )
        if abs(lead) < error:
            return "undecided"
        if lead < 0:
            return "**no**"
        better, worse = (self.value, bar) if more else (bar, self.value)
        is_loose = bar and better > LOOSE * worse and not (self.rival and self.aim == 1)
        return "loose target" if is_loose else "yes"

    @property
    def met(self) -> bool | None:
        """Whether the target was reached; None without a target and if it is undecided or loose."""
        return {"yes": True, "**no**": False}.get(self.verdict or "")

    def row(self) -> dict[str, Any]:
        """Returns all fields, the ratio, the verdict and whether the target was met, for JSON."""
        return {**asdict(self), "ratio": self.ratio, "verdict": self.verdict, "met": self.met}


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


def table(claims: Sequence[Claim], verdicts: Sequence[str] | None = None) -> str:
    """Formats claims as a Markdown table; ``verdicts`` replaces the column ``met``."""
    lines = [
        "| claim | ours | rival | theirs | ratio | aim | met |",
        "| --- | ---: | --- | ---: | ---: | ---: | --- |",
    ]
    for claim, verdict in zip(claims, verdicts or [claim.verdict or "–" for claim in claims], strict=True):
        sign = {"more": "≥ ", "less": "≤ ", None: ""}[claim.better]
        aim = claim.aim if claim.better else None
        cells = [
            claim.name,
            number(claim.value, None if claim.rival else aim) + _bounds(claim.interval),
            claim.rival or "–",
            number(claim.rival_value) + _bounds(claim.rival_interval),
            number(claim.ratio, aim),
            "–" if claim.aim is None else f"{sign}{claim.aim:,.10g}",
            verdict,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Returns the 95 % interval of the mean of values (Student's t); None for fewer than two."""
    from scipy.stats import t  # not a package of the GPU measurements

    if len(values) < 2:
        return None
    mean, error = statistics.fmean(values), statistics.stdev(values) / math.sqrt(len(values))
    margin = float(t.ppf(0.975, len(values) - 1)) * error
    return mean - margin, mean + margin


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
    """Returns the current commit, with ``-dirty`` if files other than the written results differ from it."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], capture_output=True, encoding="utf-8", cwd=ROOT, check=False
        ).stdout.strip()

    exclusions = [f":!{file}" for file in WRITTEN]
    dirty = git("status", "--porcelain", "--untracked-files=no", "--", ".", *exclusions)
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("-dirty" if dirty else "")


def _lines(file: str) -> list[str]:
    try:
        return Path(file).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def _bounds(interval: Sequence[float] | None) -> str:
    return "" if interval is None else f" [{number(interval[0])}, {number(interval[1])}]"


def _margin(value: float | None, interval: Sequence[float] | None, bound: int) -> float:
    return 0.0 if value is None or interval is None else abs(value - interval[bound])


def number(value: float | None, aim: float | None = None) -> str:
    """Formats a number with three digits, or as many as its side of the target needs."""
    if value is None:
        return "–"
    if aim is None or value == aim:
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    rounded = value
    for digits in range(max(3, len(f"{abs(value):.0f}")), 17):
        rounded = float(f"{value:.{digits}g}")
        if rounded != aim and (rounded > aim) == (value > aim):
            break
    return f"{rounded:,.10g}"
