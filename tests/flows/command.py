"""The command as a user types it."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "sample" / "guide.xml.gz"


def guidespace(*arguments, cwd=ROOT, before=(), **more):
    """Runs the command in ``cwd`` by the command ``before``, with ``more`` in its environment."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PREFECT_", "MLFLOW_", "GUIDESPACE_"))
    }
    return subprocess.run(
        [*before, sys.executable, "-m", "flows", *map(str, arguments)],
        cwd=cwd,
        env={**environment, "PYTHONPATH": str(ROOT), **more},
        capture_output=True,
        text=True,
        timeout=280,
    )


def answer(*arguments):
    done = guidespace(*arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
