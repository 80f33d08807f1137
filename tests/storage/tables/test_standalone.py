"""The folder is an independent library: its wheel trains without the project."""

import ast
import os
import re
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from deployments.tables_wheel import build
from storage.tables.segment_sums import stable_order

FOLDER = Path(__file__).parents[3] / "storage" / "tables"
REQUIRED = {"torch", "numpy", "safetensors", "cupy", "storage"}
CHECK = """
import importlib.util, sys
from pathlib import Path
assert losses[-1] < losses[0] / 2, (losses[0], losses[-1])
packages = {file.parent.name for file in Path(sys.argv[1]).glob("*/__init__.py")}
assert "storage" in packages and not any(map(importlib.util.find_spec, packages))
installed = Path(sys.prefix).resolve()
files = [getattr(module, "__file__", None) for module in [*sys.modules.values()]]
files = {Path(file).resolve() for file in files if file}
files = {file.relative_to(installed) for file in files if file.is_relative_to(installed)}
assert files and all(file.parts[3] == "offloaded_tables" for file in files), files
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


def requirements(name: str) -> set[str]:
    """Returns the installed distributions that a distribution needs, and itself."""
    needed, new = set(), {name}
    while new:
        needed |= new
        names = {
            re.split(r"[^\w.-]", requirement)[0].lower()
            for one in new
            for requirement in metadata.requires(one) or []
            if "extra ==" not in requirement
        }
        new = {one for one in names - needed if next(iter(metadata.distributions(name=one)), None)}
    return needed


@pytest.mark.slow
def test_the_wheel_trains_word2vec_of_its_readme(tmp_path: Path):
    """An environment has links to torch, NumPy, safetensors and what they need, and the wheel."""
    links, environment = tmp_path / "links", tmp_path / "environment"
    links.mkdir()
    for name in set().union(*map(requirements, ("torch", "numpy", "safetensors"))):
        distribution = metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or []} - {"..", "__pycache__"}:
            (links / top).symlink_to(Path(str(distribution.locate_file(top))))
    venv.create(environment, symlinks=True)
    python = environment / "bin" / "python"
    (site,) = environment.glob("lib/python*/site-packages")
    (site / "links.pth").write_text(f"{links}\n", encoding="utf-8")
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-index"]
    subprocess.run([*install, str(build(tmp_path))], check=True)  # fails if a requirement is not met
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    command = [str(python), "-c", example + CHECK, str(FOLDER.parents[1])]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    subprocess.run(command, cwd=tmp_path, env=clean, check=True, timeout=120)


@pytest.mark.parametrize("below", [1, 7, 1 << 16, (1 << 16) + 1, 1 << 33])
def test_order_is_a_stable_sorts(below: int):
    values = np.random.default_rng(0).integers(0, below, 5000)
    values[:100] = values[100:200]
    assert np.array_equal(stable_order(values, below), np.argsort(values, kind="stable"))
    assert len(stable_order(values[:0], below)) == 0
