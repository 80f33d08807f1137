"""The home: one folder that holds everything a run writes, and the only way to publish into it.

Layout::

    home/home.json            layout version, so that another version's home is refused; time zone; id
    home/writer.lock          who writes just now
    home/catalogue.duckdb     the catalogue (storage/catalogue)
    home/corrections.json     categories that a person corrected, for readers (storage/home/corrections.py)
    home/artifacts/KIND/KEY/  published folders; artifact.json is written last
    home/sentences/           vectors of texts, by encoder (storage/sentences.py)
    home/likes.duckdb         likes of viewers, likes.salt for their hashes (storage/catalogue/likes.py)
    home/unlisted-*.parquet   vectors of titles that the champion lacks (tasks/tonight/vectors.py)
    home/mlflow.db, mlflow/   MLflow's database and artifacts, where no server is set

A folder is written beside its final place and renamed once its ``artifact.json`` (files, sizes, SHA-256) is
complete. A killed run leaves at most a ``*.tmp`` folder, which the next writer removes. ``artifact.json`` has
the time of publication; the time of last use, for pruning, is the modification time of the folder itself.
"""

import datetime
import functools
import hashlib
import json
import os
import shutil
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from filelock import AcquireReturnProxy, FileLock, Timeout

from storage.artifacts import Artifact
from storage.atomic import replaced_folder
from storage.errors import ExpectedError
from storage.home.marker import MARKER, write_marker
from storage.home.zones import KEY, home_zone
from storage.json_file import write_json

LAYOUT_VERSION = 1
A = TypeVar("A", bound=Artifact)
Instant = Callable[[Path, Mapping[str, Any]], datetime.datetime]  # of an artifact.json and its content


class HomeError(ExpectedError):
    """The home cannot be used; the message says what was found and what to do."""


class HomeLocked(HomeError):
    """Another process is writing to the home."""


@dataclass
class Draft(Generic[A]):
    """A folder being written: fill it, ``counts`` and ``details``; published when the ``with`` block ends.

    ``made_of`` has the stage, its settings, and kind, path and digest of its ``inputs``; no digest covers it.
    """

    kind: type[A]
    folder: Path
    counts: dict[str, int] = field(default_factory=dict)
    details: dict[str, object] = field(default_factory=dict)
    made_of: dict[str, object] = field(default_factory=dict)
    digest: str | None = None
    _artifact: A | None = None

    @property
    def artifact(self) -> A:
        """The published artifact; a RuntimeError before the ``with`` block has ended."""
        if self._artifact is None:
            raise RuntimeError(f"{self.kind.__name__} is not published before its with block ends")
        return self._artifact


class Workspace:
    """A home on disk; the folder is made if missing, unless ``create`` is false; else a HomeError."""

    def __init__(self, home: str | Path, *, create: bool = True) -> None:
        self.home = Path(home).expanduser().resolve()
        marker = self.home / MARKER
        if "?" in str(self.home):
            problem = "DuckDB and SQLite take what follows '?' for options, not for the path"
            raise HomeError(f"{self.home}: {problem}. Name another --home.")
        if not marker.exists():
            if not create:
                advice = "Run `guidespace nightly` first, or name another --home."
                raise HomeError(f"{self.home} is no GuideSpace home (no home.json). {advice}")
            if self.home.exists() and not self.home.is_dir():
                raise HomeError(f"{self.home} is a file; a home is a folder. Name another --home.")
            try:
                self.home.mkdir(parents=True, exist_ok=True)
                write_json(marker, {"layout_version": LAYOUT_VERSION, KEY: home_zone(self.home).key})
            except OSError as error:
                problem = f"{self.home} cannot be made a home ({error.strerror or error})"
                raise HomeError(f"{problem}. Name another --home.") from error
        try:
            found = json.loads(marker.read_text(encoding="utf-8"))["layout_version"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            advice = "Name another --home, or restore that file."
            raise HomeError(f"{marker} is not what GuideSpace wrote there. {advice}") from error
        if found != LAYOUT_VERSION:
            versions = f"layout version {found}, this GuideSpace writes version {LAYOUT_VERSION}"
            advice = "Use the version that made it, or name another --home."
            raise HomeError(f"{self.home} has {versions}. {advice}")

    def size(self) -> int:
        """Bytes of all readable files in the home; a writer may remove some meanwhile."""
        return folder_size(self.home)

    @contextmanager
    def writing(
        self, what: str, *, flow_run: str = "", wait_seconds: float = 0, tell: Callable[[str], None] = print
    ) -> Iterator[str]:
        """Holds the home for one writer; the kernel releases the lock of a process that dies.

        Other writers see ``what``; ``tell`` is called once, with the writer that this one waits for. The
        block gets the ``flow_run`` of one that died, else "", until a writer has come that is a flow run.
        Raises HomeLocked where another process holds it, also after the wait.
        """
        file = self.home / "writer.lock"
        with self._lock(file, wait_seconds, tell):
            with suppress(OSError):  # made by another user, who let this one write to it
                file.chmod(0o600)
            write_marker(self.home, **{KEY: home_zone(self.home).key})  # an older version wrote none
            died = self._held().get("flow_run", "")
            about = {"pid": os.getpid(), "host": socket.gethostname(), "what": what}
            about |= {"flow_run": flow_run or died}
            file.write_text(
                json.dumps({**about, "since": time.strftime("%Y-%m-%d %H:%M:%S")}), encoding="utf-8"
            )
            for stale in self.home.glob("artifacts/*/*.tmp"):  # left by killed runs
                if stale.is_dir():
                    shutil.rmtree(stale, ignore_errors=True)
                else:
                    stale.unlink(missing_ok=True)
            try:
                yield died
            finally:
                file.write_text(
                    json.dumps({"flow_run": died}) if died and not flow_run else "", encoding="utf-8"
                )

    def _lock(self, file: Path, wait_seconds: float, tell: Callable[[str], None]) -> AcquireReturnProxy:
        lock = FileLock(file, mode=0o600, thread_local=False)
        for seconds in (0.0, wait_seconds):
            try:
                return lock.acquire(seconds, poll_interval=min(1.0, wait_seconds or 1.0))
            except Timeout:
                held = f"{self.home} is being written by {self.holder() or 'another process'}"
                if wait_seconds and not seconds:
                    tell(f"{held}; waiting up to {wait_seconds / 60:.0f} min for it to end")
            except OSError as error:
                problem = f"{self.home} cannot be written by this user ({error.strerror or error})"
                raise HomeError(f"{problem}. Name another --home, or ask its owner.") from error
        raise HomeLocked(f"{held}. Wait for it to end, or name another --home.")

    def holder(self) -> str | None:
        """The process that holds the home, in words; None where none has written its name."""
        if "pid" not in (held := self._held()):
            return None
        return f"process {held['pid']} on {held['host']} since {held['since']} ({held['what']})"

    def _held(self) -> dict[str, str]:
        try:
            return json.loads((self.home / "writer.lock").read_text(encoding="utf-8") or "{}")
        except (OSError, ValueError):
            return {}

    @contextmanager
    def publishing(self, kind: type[A], key: str) -> Iterator[Draft[A]]:
        """Publishes ``artifacts/KIND/KEY`` atomically; an exception inside leaves the previous folder.

        The digest is that of the files' names and contents, unless the writer sets ``draft.digest``.
        """
        place = self.place(kind, key)
        with replaced_folder(place, durable=False) as temporary:  # ``read`` verifies the content
            draft = Draft(kind, temporary)
            yield draft
            written = sorted(file for file in temporary.rglob("*") if file.is_file())
            files = {file.relative_to(temporary).as_posix(): _describe(file) for file in written}
            digest = draft.digest or hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
            about = {"counts": draft.counts, "details": draft.details, "made_of": draft.made_of}
            about["published_at"] = _now()
            content = {"kind": kind.kind, "digest": digest, "files": files, **about}
            write_json(temporary / "artifact.json", content, sort_keys=True)
        path = place.relative_to(self.home).as_posix()
        draft._artifact = kind(path=path, digest=digest, counts=dict(draft.counts))
        draft.folder = place

    def place(self, kind: type[Artifact], key: str) -> Path:
        """Folder of the artifact of that kind and key, whether it exists or not."""
        return self.home / "artifacts" / kind.kind.lower() / key

    def folder(self, artifact: Artifact) -> Path:
        """Folder of a published artifact; a HomeError where it is missing."""
        folder = self.home / artifact.path
        if not (folder / "artifact.json").exists():
            problem = f"{type(artifact).__name__} {artifact.path} is not in {self.home}"
            raise HomeError(f"{problem}. Run `guidespace nightly` again: it makes what is missing.")
        return folder

    def read(self, kind: type[A], key: str) -> A | None:
        """The published artifact of that kind and key, or None where it is missing or damaged."""
        place = self.place(kind, key)
        try:  # every file is there, with its size and SHA-256
            content = json.loads((place / "artifact.json").read_text(encoding="utf-8"))
            if any(
                _describe(place / name, known["size"]) != known for name, known in content["files"].items()
            ):
                return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        with suppress(OSError):  # a user who may only read
            os.utime(place)
        path = place.relative_to(self.home).as_posix()
        return kind(path=path, digest=content["digest"], counts=content["counts"])

    def publish_again(self, artifact: Artifact) -> None:
        """Sets the time of publication of an unchanged artifact to now."""
        file = self.folder(artifact) / "artifact.json"
        content = json.loads(file.read_text(encoding="utf-8"))
        write_json(file, {**content, "published_at": _now()}, sort_keys=True)

    def details(self, artifact: Artifact) -> dict[str, Any]:
        """What its writer put into ``draft.details``."""
        return json.loads((self.folder(artifact) / "artifact.json").read_text(encoding="utf-8"))["details"]


def folder_size(folder: Path) -> int:
    """Bytes of all files below a folder that can be read."""
    total = 0
    for file in (os.path.join(place, name) for place, _, names in os.walk(folder) for name in names):
        with suppress(OSError):
            total += os.lstat(file).st_size
    return total


def _describe(file: Path, size: int | None = None) -> dict[str, object]:
    """Size and SHA-256 of a file; one of another size than expected is not read."""
    found = file.stat()
    if size is not None and found.st_size != size:
        return {"size": found.st_size, "sha256": ""}
    now = time.time_ns()  # the clock of a file system ticks every few ms: what is that new may change unseen
    changed = found.st_ctime_ns if now - found.st_ctime_ns > 10**9 else now
    return {"size": found.st_size, "sha256": _sha256(file, found.st_ino, changed)}


@functools.lru_cache(maxsize=1024)  # a night asks for the same model three times
def _sha256(file: Path, inode: int, changed: int) -> str:
    """SHA-256 of a file that last ``changed`` then."""
    with open(file, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")


def published_at(file: Path, about: Mapping[str, Any]) -> datetime.datetime:
    """When an ``artifact.json`` with that content was published; in older homes, the file's time."""
    if "published_at" in about:
        return datetime.datetime.fromisoformat(about["published_at"])
    return datetime.datetime.fromtimestamp(file.stat().st_mtime, datetime.UTC)


def last_used(folder: Path) -> int:
    """When an artifact's folder was last read, in ns; older versions touched its ``artifact.json``."""
    return max(folder.stat().st_mtime_ns, (folder / "artifact.json").stat().st_mtime_ns)


def newest_first(
    workspace: Workspace, kind: type[A], *, before: str = "", instant: Instant = published_at
) -> Iterator[A]:
    """Intact artifacts of a kind by falling ``instant`` (of an ``artifact.json`` and its content); with
    ``before``, only those before the artifact of that key.
    """
    instants: dict[str, datetime.datetime] = {}
    for file in workspace.place(kind, "any").parent.glob("*/artifact.json"):
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):  # just removed, or damaged
            if file.parent.suffix != ".tmp":
                instants[file.parent.name] = instant(file, json.loads(file.read_text(encoding="utf-8")))
    until = instants.pop(before, None)
    for key in sorted(instants, key=instants.__getitem__, reverse=True):
        if (until is None or instants[key] < until) and (artifact := workspace.read(kind, key)) is not None:
            yield artifact
