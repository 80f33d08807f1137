"""Runs the command guidespace."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "sample" / "guide.xml.gz"
# Changes of a night for tests to which neither baselines nor descriptions matter: 13 CPU seconds, not 21.
QUICK_NIGHT = (
    'evaluate.baselines=[{"name":"majority"}]',
    "evaluate.resamples=100",
    "preprocess.sentences.descriptions=0",
)


def guidespace(*arguments, cwd=ROOT, before=(), program=("-m", "flows"), encoding="utf-8", **more):
    """Runs the command (or another ``program`` of Python) in ``cwd`` by ``before``; ``more`` is its
    environment, ``encoding`` that of its output.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PREFECT_", "MLFLOW_", "GUIDESPACE_"))
    }
    return subprocess.run(
        [*before, sys.executable, *map(str, (*program, *arguments))],
        cwd=cwd,
        env={**environment, "PYTHONPATH": str(ROOT), **more},
        capture_output=True,
        encoding=encoding,
        timeout=280,
    )


def answer(*arguments):
    done = guidespace(*arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
