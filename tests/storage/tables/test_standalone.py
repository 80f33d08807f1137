"""The folder is a library: its wheel trains in an environment without the project."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from deployments.tables_wheel import build
from storage.tables.segment_sums import stable_order

FOLDER = Path(__file__).parents[3] / "storage" / "tables"
REQUIRED = {"torch", "numpy", "safetensors", "cupy", "storage"}
CHECK = """
import sys
assert not {"storage", "tasks"} & {name.partition(".")[0] for name in sys.modules}
assert losses[-1] < losses[0] / 2, (losses[0], losses[-1])
"""


def test_the_folder_imports_nothing_else_of_the_project():
    imported = set()
    for file in FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                imported.add(node.module or "")
            elif isinstance(node, ast.Import):
                imported |= {name.name for name in node.names}
    assert {name.partition(".")[0] for name in imported} - sys.stdlib_module_names == REQUIRED
    assert all(name.startswith("storage.tables.") for name in imported if name.startswith("storage"))


def test_the_wheel_trains_word2vec_of_its_readme(tmp_path: Path):
    """Installed into an empty folder; torch, NumPy and safetensors are those of this environment."""
    target = tmp_path / "installed"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target)]
    subprocess.run([*install, str(build(tmp_path))], check=True)
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    environment = {**os.environ, "PYTHONPATH": str(target)}
    command = [sys.executable, "-c", example + CHECK]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=120)


@pytest.mark.parametrize("below", [1, 7, 1 << 16, (1 << 16) + 1, 1 << 33])
def test_order_is_a_stable_sorts(below: int):
    values = np.random.default_rng(0).integers(0, below, 5000)
    values[:100] = values[100:200]
    assert np.array_equal(stable_order(values, below), np.argsort(values, kind="stable"))
    assert len(stable_order(values[:0], below)) == 0
