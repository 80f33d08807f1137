"""What is wrong with an installation or a home, if anything: one finding a line, each with what to do."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from packaging.requirements import Requirement
from packaging.version import Version

PROJECT = "guidespace"
CONSEQUENCES = {
    "fastapi": "Prefect's server answers 422 to workers, or does not start",
    "sqlalchemy": "Prefect's scheduler creates no runs, in silence",
    "prefect": "forms and caching were tried with these versions only",
    "torch": "training was tried with these versions only",
    "duckdb": "2.0.0 loses rows that one statement inserts under a memory limit",
}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    state: Literal["ok", "note", "bad"]
    about: str
    text: str


def examine(home: str | Path) -> Iterator[Finding]:
    """Looks at Python, the libraries, the devices and the home."""
    yield _python()
    yield from _libraries()
    yield from _devices()
    yield from _home(Path(home).expanduser())


def _python() -> Finding:
    version = platform.python_version()
    allowed = Requirement(f"python{importlib.metadata.metadata(PROJECT)['Requires-Python']}").specifier if _installed(PROJECT) else None
    if allowed is not None and not allowed.contains(version):
        return Finding("bad", "Python", f"{version}, expected {allowed}: make a new environment with `rm -rf .venv; make setup PYTHON=python3.11`")
    return Finding("ok", "Python", f"{version} on {platform.platform()}")


def _libraries() -> Iterator[Finding]:
    """Every direct dependency against its bound (pyproject.toml, as installed)."""
    try:
        declared = importlib.metadata.requires(PROJECT) or []
    except importlib.metadata.PackageNotFoundError:
        yield Finding("bad", "guidespace", "not installed in this environment; run `make setup`, or `pip install -e .` in the checkout")
        return
    for requirement in (Requirement(text) for text in declared):
        if requirement.marker and "extra" in str(requirement.marker):
            continue
        try:
            found = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            yield Finding("bad", requirement.name, f"missing; install {requirement.name}{requirement.specifier} (`make setup`)")
            continue
        if requirement.specifier.contains(Version(found).base_version, prereleases=True):
            yield Finding("ok", requirement.name, found)
        else:
            why = CONSEQUENCES.get(re.sub(r"[-_.]+", "-", requirement.name).lower(), "another version was never tried")
            yield Finding("bad", requirement.name, f"{found}, expected {requirement.specifier}: {why}. Install `{requirement.name}{requirement.specifier}`")


def _devices() -> Iterator[Finding]:
    import torch

    if not torch.cuda.is_available():
        yield Finding("note", "GPU", f"none seen by torch {torch.__version__}; training runs on the CPU with {torch.get_num_threads()} threads")
    for number in range(torch.cuda.device_count()):
        about = torch.cuda.get_device_properties(number)
        yield Finding("ok", "GPU", f"cuda:{number} {about.name}, {about.total_memory / 2**30:.0f} GiB")
    if importlib.util.find_spec("cupy") is None:
        yield Finding("note", "CuPy", "not installed; only tables larger than the GPU's memory would use it (extra `gpu`)")
    else:
        yield Finding("ok", "CuPy", next((f"{name} {importlib.metadata.version(name)}" for name in ("cupy-cuda12x", "cupy-cuda13x", "cupy") if _installed(name)), "present"))


def _installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _home(home: Path) -> Iterator[Finding]:
    from storage.catalogue.connection import Catalogue
    from storage.workspace import HomeError, HomeLocked, Workspace

    if not home.is_file() and not (home / "home.json").exists():
        yield Finding("note", "home", f"{home} is not there yet; `guidespace nightly` makes it")
        return
    try:
        workspace = Workspace(home, create=home.is_file())  # a file cannot be made one, and is told so
    except (HomeError, ValueError) as error:
        yield Finding("bad", "home", str(error))
        return
    try:
        with workspace.writing("guidespace doctor"), Catalogue.open(workspace.home):
            pass
        yield Finding("ok", "home", f"{workspace.home}: nobody is writing, the catalogue opens")
    except HomeLocked as error:
        yield Finding("note", "home", f"{error} Reading (similar, scores, status) works meanwhile.")
    except HomeError as error:
        yield Finding("bad", "catalogue", str(error))
    try:
        status = json.loads((workspace.home / "status.json").read_text())
        yield Finding("ok", "catalogue", f"{status['programmes']:,} programmes of {len(status['feeds'])} feed readings")
        if lost := sorted({feed["source"] for feed in status["feeds"] if feed.get("lost")}):
            text = f"DuckDB 2.0.0 lost the programmes of readings of {', '.join(lost)}: read the same files again"
            yield Finding("bad", "catalogue", f"{text} (`guidespace status` names each)")
    except (OSError, ValueError, KeyError):
        yield Finding("note", "catalogue", "no feed has been read yet")
