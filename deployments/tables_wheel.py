"""Builds a wheel of storage/tables that is imported as ``offloaded_tables`` (make tables-wheel)."""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "storage" / "tables"
PACKAGE_NAME = "offloaded_tables"
PYPROJECT = """
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "offloaded-tables"
version = "0.1.0"
description = "Embedding tables larger than GPU memory, for PyTorch"
readme = "README.md"
license = "Apache-2.0"
requires-python = ">=3.11"
dependencies = ["torch>=2.11,<2.14", "numpy>=2.2", "safetensors>=0.5"]

[project.optional-dependencies]
gpu = ["cupy-cuda13x>=14"]

[tool.setuptools]
packages = ["offloaded_tables", "offloaded_tables.eviction"]
"""


def build(folder: Path) -> Path:
    """Builds the wheel in ``folder`` with the installed setuptools, and returns the path of the wheel."""
    with tempfile.TemporaryDirectory() as temporary_folder:
        project, package = Path(temporary_folder), Path(temporary_folder) / PACKAGE_NAME
        for file in SOURCE.rglob("*.py"):
            target = package / file.relative_to(SOURCE)
            target.parent.mkdir(parents=True, exist_ok=True)
            text = re.sub(r"\bstorage\.tables\b", PACKAGE_NAME, file.read_text(encoding="utf-8"))
            target.write_text(text, encoding="utf-8")
        shutil.copy(SOURCE / "README.md", project)
        (project / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
        subprocess.run([*command, "--wheel-dir", str(folder), str(project)], check=True)
    return max(folder.glob(f"{PACKAGE_NAME}-*.whl"), key=lambda wheel: wheel.stat().st_mtime)


if __name__ == "__main__":
    print(build(Path(sys.argv[1] if len(sys.argv) > 1 else "dist")))
