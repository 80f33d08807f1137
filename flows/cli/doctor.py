"""Checks an installation and a home for ``guidespace doctor``, and names a remedy for each problem."""

import importlib.metadata
import importlib.util
import json
import platform
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.version import Version

from flows.cli.installation import REMEDY
from flows.up.machine_checks import Finding, examine_machine
from storage.installed import is_installed

if TYPE_CHECKING:
    import torch

PROJECT = "guidespace"
CONSEQUENCES = {  # package -> consequence of an untested version
    "fastapi": "Prefect's server answers 422 to workers, or does not start",
    "sqlalchemy": "Prefect's scheduler creates no runs, without a message",
    "prefect": "forms and caching have been tested with these versions only",
    "torch": "training has been tested with these versions only",
    "duckdb": "version 2.0.0 loses inserted rows if one INSERT exceeds the memory limit",
}


def examine(home: str | Path) -> Iterator[Finding]:
    """Yields the findings about Python, the installed packages, the GPU, the machine and the home."""
    has_night = is_installed("torch")
    if _installed_version(PROJECT) is None:
        advice = "run `make setup`, or `pip install -e .` in the checkout"
        yield Finding("bad", PROJECT, f"not installed in this environment; {advice}")
    else:
        allowed_versions = importlib.metadata.metadata(PROJECT)["Requires-Python"]
        python = platform.python_version()
        advice = "make a new environment with `rm -rf .venv; make setup PYTHON=python3.11`"
        if Requirement(f"python{allowed_versions}").specifier.contains(python):
            yield Finding("ok", "Python", f"{python} on {platform.platform()}")
        else:
            yield Finding("bad", "Python", f"{python}, expected {allowed_versions}: {advice}")
        yield from map(_check_library, _list_requirements(with_night=has_night))
    if has_night:
        yield from _check_devices()
    else:
        yield Finding(
            "note", "night", f"not installed: this installation can use models, but not run a night; {REMEDY}"
        )
    folder = Path(home).expanduser().resolve()
    yield from examine_machine(folder)
    yield from _check_home(folder)


def _list_requirements(with_night: bool) -> Iterator[Requirement]:
    """Yields the requirements of the light installation and, if ``with_night``, of the extra ``night``."""
    for requirement in map(Requirement, importlib.metadata.requires(PROJECT) or []):
        extra = re.search(r'extra == "(.+?)"', str(requirement.marker))
        if extra is None or (with_night and extra[1] == "night"):
            yield requirement


def _installed_version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _check_library(requirement: Requirement) -> Finding:
    name, specifier = requirement.name, requirement.specifier
    version = _installed_version(name)
    if version is None:
        return Finding("bad", name, f"missing; install {name}{specifier} (`make setup`)")
    if specifier.contains(Version(version).base_version, prereleases=True):
        return Finding("ok", name, version)
    consequence = CONSEQUENCES.get(
        re.sub(r"[-_.]+", "-", name).lower(), "other versions have not been tested"
    )
    return Finding(
        "bad", name, f"{version}, expected {specifier}: {consequence}. Install `{name}{specifier}`"
    )


def _check_devices() -> Iterator[Finding]:
    import torch

    if not torch.cuda.is_available():
        consequence = f"training runs on the CPU with {torch.get_num_threads()} threads"
        yield Finding("note", "GPU", f"torch {torch.__version__} finds no GPU; {consequence}")
    for number in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(number)
        yield Finding(
            "ok", "GPU", f"cuda:{number} {properties.name}, {properties.total_memory / 2**30:.0f} GiB"
        )
    if importlib.util.find_spec("cupy"):
        yield _check_kernels(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    else:
        purpose = "only embedding tables larger than the GPU's memory would use it (extra `gpu`)"
        yield Finding("note", "CuPy", f"not installed; {purpose}")


def _check_kernels(device: "torch.device") -> Finding:
    """Checks that CuPy compiles the kernels for tables larger than GPU memory, and that a GPU runs them."""
    from storage.tables import check_kernels

    packages = [name for name in ("cupy-cuda12x", "cupy-cuda13x", "cupy") if _installed_version(name)]
    package_text = f"{packages[0]} {_installed_version(packages[0])}" if packages else "present"
    try:
        check_kernels(device)
    except Exception as error:  # CuPy, its compiler and the driver raise various types
        advice = "install the extra `gpu` (CUDA 12) or `gpu-cuda13`, whichever fits the driver"
        consequence = "embedding tables larger than the GPU's memory are slower"
        return Finding("bad", "CuPy", f"{package_text} does not work ({error}): {consequence}; {advice}")
    result = (
        "compiles the kernels, and the GPU runs them" if device.type == "cuda" else "compiles the kernels"
    )
    return Finding("ok", "CuPy", f"{package_text} {result}")


def _check_home(home: Path) -> Iterator[Finding]:
    from storage.catalogue.connection import Catalogue
    from storage.home.marker import is_home
    from storage.home.workspace import HomeError, HomeLocked, Workspace

    if not home.is_file() and not is_home(home):
        yield Finding("note", "home", f"{home} does not exist yet; `guidespace nightly` creates it")
        return
    try:
        workspace = Workspace(home, create=home.is_file())  # raises HomeError for a file
    except (HomeError, ValueError) as error:
        yield Finding("bad", "home", str(error))
        return
    try:
        with workspace.writing("guidespace doctor"), Catalogue.open(workspace.home):
            pass
        yield Finding("ok", "home", f"{workspace.home}: not locked; the catalogue opens")
    except HomeLocked as error:
        yield Finding("note", "home", f"{error} Commands that read (similar, scores, status) work meanwhile.")
    except HomeError as error:
        yield Finding("bad", "catalogue", str(error))
    try:
        status = json.loads((workspace.home / "status.json").read_text(encoding="utf-8"))
        readings = f"{status['programmes']:,} programmes of {len(status['feeds'])} feed readings"
    except (OSError, ValueError, KeyError):
        yield Finding("note", "catalogue", "no feed has been read yet")
        return
    yield Finding("ok", "catalogue", readings)
