"""First run of a new user: ``make run`` in a new clone after the installation.

Clones the last commit, installs it as ``make run`` does (not measured: minutes, most of them downloads), and
runs ``make run`` on the bundled guide, each time with a new home. CPU seconds are those of all processes. The
first run reads packages that no process has used since the installation; the installation has compiled the
code that needs compiling.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.claims import ROOT, Claim, run
from benchmarks.processes import time_command

LATER = 3


def measure_first_run(quick: bool) -> Sequence[Claim]:
    """Measures a first run and later ones."""
    elsewhere = ("PREFECT_", "MLFLOW_", "GUIDESPACE_", "MAKE", "OMP_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(elsewhere)}
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
        command = ["make", "-C", str(clone), f"PYTHON={sys.executable}"]
        subprocess.run([*command, ".venv/.ready"], check=True, env=environment, stdout=sys.stderr)
        runs = [
            time_command([*command, "run", f"GUIDESPACE_HOME={folder}/home-{number}"], environment)
            for number in range(2 if quick else 1 + LATER)
        ]
    seconds, cpu, _ = runs[0]
    later = [statistics.median(values) for values in zip(*(run[:2] for run in runs[1:]), strict=True)]
    name, rival = "first run in a new clone", "later run, new home"
    return [
        Claim(f"{name}, seconds", seconds, aim=13.5, better="less"),
        Claim(f"{name}, seconds", seconds, rival, later[0], better=None),
        Claim(f"{name}, CPU seconds", cpu, rival, later[1], better=None),
    ]


if __name__ == "__main__":
    sys.exit(run(measure_first_run, __doc__ or ""))
