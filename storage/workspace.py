"""The home: one folder that holds everything a run writes, and the only way to publish into it.

Layout::

    home/home.json            layout version, so that another version's home is refused, not damaged
    home/writer.lock          who writes just now
    home/catalogue.duckdb     the catalogue (storage/catalogue)
    home/artifacts/KIND/KEY/  published folders; artifact.json is written last
    home/mlflow.db, mlflow/   MLflow's database and artifacts, where no server is set

A folder is written beside its final place and renamed when its ``artifact.json`` (files, sizes, SHA-256) is complete:
its presence means "complete", and a killed run leaves at most a ``*.tmp`` folder that the next writer removes.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Generic, TypeVar

from storage.artifacts import Artifact
from storage.json_file import write_json

LAYOUT_VERSION = 1
POLL_SECONDS = 1.0  # between two looks at a lock that somebody holds
A = TypeVar("A", bound=Artifact)


class HomeError(Exception):
    """The home cannot be used; the message says what was found and what to do."""


class HomeLocked(HomeError):
    """Another process is writing to the home."""


@dataclass
class Draft(Generic[A]):
    """A folder being written. Fill ``folder`` and ``counts``; ``artifact`` is there once the ``with`` block has ended."""

    kind: type[A]
    folder: Path
    counts: dict[str, int] = field(default_factory=dict)
    details: dict[str, object] = field(default_factory=dict)
    digest: str | None = None
    _artifact: A | None = None

    @property
    def artifact(self) -> A:
        """The published artifact.

        Raises:
            RuntimeError: The ``with`` block has not ended yet.
        """
        if self._artifact is None:
            raise RuntimeError(f"{self.kind.__name__} is not published before its with block ends")
        return self._artifact


class Workspace:
    """A home on disk.

    Args:
        home: The folder; made if missing, unless ``create`` is false.

    Raises:
        HomeError: It is missing (``create=False``), no folder, was written by another version of GuideSpace, or has a ``?`` in its path.
    """

    def __init__(self, home: str | Path, *, create: bool = True) -> None:
        self.home = Path(home).expanduser().resolve()
        marker = self.home / "home.json"
        if "?" in str(self.home):
            raise HomeError(f"{self.home}: DuckDB and SQLite take what follows '?' for options, not for the path. Name another --home.")
        if not marker.exists():
            if not create:
                raise HomeError(f"{self.home} is no GuideSpace home (no home.json). Run `guidespace nightly` first, or name another --home.")
            if self.home.exists() and not self.home.is_dir():
                raise HomeError(f"{self.home} is a file; a home is a folder. Name another --home.")
            try:
                self.home.mkdir(parents=True, exist_ok=True)
                write_json(marker, {"layout_version": LAYOUT_VERSION})
            except OSError as error:
                raise HomeError(f"{self.home} cannot be made a home ({error.strerror or error}). Name another --home.") from error
        try:
            found = json.loads(marker.read_text())["layout_version"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise HomeError(f"{marker} is not what GuideSpace wrote there. Name another --home, or restore that file.") from error
        if found != LAYOUT_VERSION:
            raise HomeError(f"{self.home} has layout version {found}, this GuideSpace writes version {LAYOUT_VERSION}. Use the version that made it, or name another --home.")

    def size(self) -> int:
        """Bytes of all files in the home, as far as this user may look; a writer may remove some meanwhile."""
        total = 0
        for folder, _, names in os.walk(self.home):
            for name in names:
                with suppress(OSError):
                    total += os.lstat(os.path.join(folder, name)).st_size
        return total

    # -- writing -----------------------------------------------------------------------------------------------------

    @contextmanager
    def writing(self, what: str, *, wait_seconds: float = 0, tell: Callable[[str], None] = print) -> Iterator[None]:
        """Holds the home for one writer (an advisory ``flock``, released by the kernel when the process dies).

        Args:
            what: Words for whoever is refused: "nightly run of 3 feeds".
            wait_seconds: How long to wait for another writer to end.
            tell: Hears once for whom it waits.

        Raises:
            HomeLocked: Another process holds it, or still does after the wait; the message names process, host and since when.
            HomeError: This user may not write to it.
        """
        try:
            # closed by the with below
            lock = open(self.home / "writer.lock", "a+", encoding="utf-8", opener=_private)  # noqa: SIM115
        except OSError as error:
            raise HomeError(f"{self.home} cannot be written by this user ({error.strerror or error}). Name another --home, or ask whose it is.") from error
        with lock as handle:
            deadline = time.monotonic() + wait_seconds
            waits = False
            while not _lock(handle):
                if time.monotonic() < deadline:
                    if not waits:
                        tell(f"{self.home} is being written by {self.holder() or 'another process'}; waiting up to {wait_seconds / 60:.0f} min for it to end")
                    waits = True
                    time.sleep(min(POLL_SECONDS, wait_seconds))
                    continue
                raise HomeLocked(f"{self.home} is being written by {self.holder() or 'another process'}. Wait for it to end, or name another --home.")
            handle.seek(0)
            handle.truncate()
            since = time.strftime("%Y-%m-%d %H:%M:%S")
            about = {"pid": os.getpid(), "host": socket.gethostname(), "since": since, "what": what}
            json.dump(about, handle)
            handle.flush()
            for stale in self.home.glob("artifacts/*/*.tmp"):  # what killed runs left behind
                if stale.is_dir():
                    shutil.rmtree(stale, ignore_errors=True)
                else:
                    stale.unlink(missing_ok=True)
            try:
                yield
            finally:
                handle.seek(0)
                handle.truncate()

    def holder(self) -> str | None:
        """Who holds the home, in words; None when nobody wrote their name."""
        try:
            held = json.loads((self.home / "writer.lock").read_text())
        except (OSError, ValueError):
            return None
        return f"process {held['pid']} on {held['host']} since {held['since']} ({held['what']})"

    @contextmanager
    def publishing(self, kind: type[A], key: str) -> Iterator[Draft[A]]:
        """Publishes a folder atomically as ``artifacts/KIND/KEY``; an exception inside leaves what was there before.

        The digest is that of the files' names and contents, or the one the writer puts into ``draft.digest``.
        """
        place = self.place(kind, key)
        place.parent.mkdir(parents=True, exist_ok=True)
        temporary = place.with_name(f"{place.name}.{os.getpid()}.tmp")
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        draft = Draft(kind, temporary)
        try:
            yield draft
            files = {str(file.relative_to(temporary).as_posix()): _describe(file) for file in sorted(temporary.rglob("*")) if file.is_file()}
            digest = draft.digest or hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
            path = place.relative_to(self.home).as_posix()
            write_json(temporary / "artifact.json", {"kind": kind.__name__, "digest": digest, "counts": draft.counts, "details": draft.details, "files": files}, sort_keys=True)
            before = place.with_name(f"{place.name}.{os.getpid()}.before.tmp")
            shutil.rmtree(before, ignore_errors=True)
            if place.exists():  # a rename cannot replace a folder; two renames leave no half of it for readers
                os.rename(place, before)
            os.rename(temporary, place)
            shutil.rmtree(before, ignore_errors=True)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        draft._artifact = kind(path=path, digest=digest, counts=dict(draft.counts))
        draft.folder = place

    # -- reading -----------------------------------------------------------------------------------------------------

    def place(self, kind: type[Artifact], key: str) -> Path:
        """Folder of the artifact of that kind and key, whether it exists or not."""
        return self.home / "artifacts" / kind.__name__.lower() / key

    def folder(self, artifact: Artifact) -> Path:
        """Folder of a published artifact.

        Raises:
            HomeError: It is not there (any more).
        """
        folder = self.home / artifact.path
        if not (folder / "artifact.json").exists():
            raise HomeError(f"{type(artifact).__name__} {artifact.path} is not in {self.home}. Run `guidespace nightly` again: it makes what is missing.")
        return folder

    def read(self, kind: type[A], key: str) -> A | None:
        """The published artifact of that kind and key, or None when it is missing or damaged."""
        place = self.place(kind, key)
        if not _verifies(place):
            return None
        with suppress(OSError):  # of whoever may only read
            os.utime(place / "artifact.json")  # used tonight: pruning goes by it
        content = json.loads((place / "artifact.json").read_text())
        return kind(path=place.relative_to(self.home).as_posix(), digest=content["digest"], counts=content["counts"])

    def details(self, artifact: Artifact) -> dict[str, Any]:
        """The further facts that its writer put into ``draft.details``."""
        return json.loads((self.folder(artifact) / "artifact.json").read_text())["details"]


def _private(path: str, flags: int) -> int:
    """Opens a file that nobody but its owner may read, whatever it was before."""
    opened = os.open(path, flags, 0o600)
    with suppress(OSError):  # made by another user, who let this one write to it
        os.fchmod(opened, 0o600)
    return opened
def _lock(handle: IO[str]) -> bool:
    """Takes the lock if it is free."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _verifies(place: Path) -> bool:
    """Whether every file that artifact.json names is there with that size and SHA-256."""
    try:
        files = json.loads((place / "artifact.json").read_text())["files"]
        return all(_describe(place / name, size=about["size"]) == about for name, about in files.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _describe(file: Path, size: int | None = None) -> dict[str, object]:
    """Size and SHA-256 of a file; a size other than the expected one saves the reading."""
    found = file.stat().st_size
    if size is not None and found != size:
        return {"size": found, "sha256": ""}
    with open(file, "rb") as handle:
        return {"size": found, "sha256": hashlib.file_digest(handle, "sha256").hexdigest()}
