"""Nights on the bundled guide that are killed at random moments: how many the next run completes.

Runs the soak test of tests/recovery, which sends SIGKILL to the process of ``guidespace nightly`` and runs
the command again. A night counts if the catalogue, the scores and the model equal those of an undisturbed
night, exactly one version is champion, no run is left Running, and finished stages are not repeated. Kills of
servers are not included (`make soak`).
"""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from benchmarks.claims import ROOT, Claim, run

TEST = "tests/recovery/test_one_command.py::test_kills"
SEEDS = 20


def measure(quick: bool) -> Sequence[Claim]:
    """Counts the seeds that recover."""
    seeds = 2 if quick else SEEDS
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = ["-q", "-m", "soak", "-p", "no:cacheprovider", f"--junitxml={report}"]
        tests = [f"{TEST}[{seed}]" for seed in range(seeds)]
        command = [sys.executable, "-m", "pytest", *options, *tests]
        subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False)
        counts = next(ElementTree.parse(report).iter("testsuite")).attrib
    survived = seeds - sum(int(counts[outcome]) for outcome in ("failures", "errors", "skipped"))
    return [Claim(f"killed nights that the next run completed, of {seeds}", survived, aim=seeds)]


if __name__ == "__main__":
    sys.exit(run(measure, __doc__ or ""))
