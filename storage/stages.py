"""What makes a stage run again: its inputs' digests, its settings, its own code and the libraries it stands on.

Prefect's TASK_SOURCE sees only the wrapper's lines, so the code part is made here: the files that the stage's task.py
imports, directly or not (read from the syntax tree, nothing is executed), and the versions of the packages they import.

A cached result counts only if the published folder still verifies. Prefect asks for a key before it looks, so the key
carries a nonce kept beside the folder: while the folder verifies the nonce stays; once it does not, a new nonce makes
the old result unreachable. Nonces also keep two homes apart that share one result storage.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import sys
import uuid
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from storage.artifacts import Artifact
from storage.digests import content_digest
from storage.workspace import Draft, Workspace

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("flows", "tasks", "storage", "deployments")
NOT_INPUTS = ("home", "run")  # where it runs and who is told: they change nothing in what comes out
COMPANIONS = {".html", ".css", ".js", ".txt", ".csv"}  # read by the code beside them
NOT_CODE = ("storage.tracking",)  # for the same reason
DISTRIBUTIONS = {"faiss": "faiss-cpu", "sklearn": "scikit-learn", "yaml": "pyyaml"}  # import name -> distribution, where they differ
A = TypeVar("A", bound=Artifact)


@dataclass(frozen=True)
class Stage(Generic[A]):
    """One stage of the road: what it publishes and the file whose import closure is its code.

    Args:
        kind: Type of the artifact that it publishes.
        file: ``__file__`` of its task.py.
        name: Of the Prefect task; "" is the folder's name.
    """

    kind: type[A]
    file: str
    name: str = ""

    def key(self, *inputs: object) -> str:
        """Hexadecimal key of this stage on these inputs (artifacts, settings, plain values), 32 digits."""
        text = json.dumps([self.kind.__name__, [_canonical(value) for value in inputs], fingerprint(self.file)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def publish(self, home: str | Path, *inputs: object) -> AbstractContextManager[Draft[A]]:
        """Publishes into the place that belongs to these inputs (see Workspace.publishing)."""
        return Workspace(home).publishing(self.kind, self.key(*inputs))

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments for ``prefect.task``: cached by key, result kept as JSON, readable run name."""
        return {
            "name": self.name or Path(self.file).parent.name,
            "task_run_name": self.name or Path(self.file).parent.name,
            "cache_key_fn": self._cache_key,
            "persist_result": True,
            "result_serializer": "json",
        }

    def _cache_key(self, context: object, parameters: Mapping[str, Any]) -> str:
        key = self.key(*(value for name, value in parameters.items() if name not in NOT_INPUTS))
        workspace = Workspace(parameters["home"])
        note = workspace.place(self.kind, key).with_suffix(".nonce")
        if workspace.read(self.kind, key) is None or not note.exists():
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text(uuid.uuid4().hex)
        return f"{key}-{note.read_text()}"


def _canonical(value: object) -> object:
    """JSON-ready form of an input; an artifact counts by its digest alone, a field with ``keyed=False`` in its metadata not at all."""
    if isinstance(value, Artifact):
        return [type(value).__name__, value.digest]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [
            type(value).__name__,
            {
                f.name: _field(f, getattr(value, f.name))
                for f in dataclasses.fields(value)
                if f.metadata.get("keyed", True)
            },
        ]
    if isinstance(value, Mapping):
        return {str(name): _canonical(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Path):
        return str(value)
    raise ValueError(f"a stage's input is an artifact, settings or plain values, not {type(value).__name__}")


def _field(field: dataclasses.Field[Any], value: object) -> object:
    """A field with ``content`` in its metadata names a file or folder: what is in it counts, not its name."""
    return content_digest(value) if field.metadata.get("content") and isinstance(value, str) and value else _canonical(value)


@functools.cache
def fingerprint(file: str) -> str:
    """SHA-256 over the source files that ``file`` imports, directly or not, and the versions of the packages they import."""
    files, packages = import_closure(Path(file).resolve())
    digest = hashlib.sha256(sys.version.split()[0].encode())
    for path in sorted(files):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
        for companion in sorted(file for file in path.parent.iterdir() if file.suffix in COMPANIONS):
            digest.update(companion.name.encode() + b"\0" + companion.read_bytes())
    for package in sorted(packages):
        digest.update(f"{package}=={_version(package)}".encode())
    return digest.hexdigest()


def import_closure(file: Path) -> tuple[set[Path], set[str]]:
    """Our files reached from ``file`` by imports anywhere in them, itself included, and the outside packages they name."""
    files: set[Path] = set()
    packages: set[str] = set()
    waiting = [file]
    while waiting:
        path = waiting.pop()
        if path in files:
            continue
        files.add(path)
        for name in _imported(path):
            top = name.split(".")[0]
            if name.startswith(NOT_CODE):
                continue
            if top in PACKAGES:
                waiting.extend(found for found in _files(name) if found not in files)
            elif top not in sys.stdlib_module_names:
                packages.add(top)
    return files, packages


def _imported(path: Path) -> set[str]:
    """Dotted names that a file imports; ``from a import b`` gives both ``a`` and ``a.b`` (b may be a module)."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def _files(name: str) -> list[Path]:
    """Source files that importing a dotted name of ours executes."""
    parts = name.split(".")
    found = [ROOT.joinpath(*parts[: i + 1], "__init__.py") for i in range(len(parts))]
    found.append(ROOT.joinpath(*parts).with_suffix(".py"))
    return [path for path in found if path.is_file()]


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(DISTRIBUTIONS.get(package, package))
    except importlib.metadata.PackageNotFoundError:
        return "absent"
