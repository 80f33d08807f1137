"""Manages the home folder, in which runs store all results: layout, lock, and publication of artifacts.

Layout::

    home/home.json            layout version (other versions are rejected), time zone, id
    home/writer.lock          lock for processes that write to the home
    home/catalogue.duckdb     database of all TV programmes (storage/catalogue)
    home/corrections.json     users' corrections of categories (storage/home/corrections.py)
    home/artifacts/KIND/KEY/  published artifacts; artifact.json is written last
    home/sentences/           sentence vectors by encoder (storage/sentences.py)
    home/likes.duckdb, .salt  ratings by viewers, and the salt of their hashes (storage/catalogue/likes.py)
    home/unlisted-*.parquet   vectors of titles that the served model does not have (tasks/tonight/vectors.py)
    home/models/              copies of models of other machines (flows/followed_model.py)
    home/champion.json        champion on an MLflow server, and its files in champions/ (storage/tracking)
    home/latest.json          results of the last nightly run (storage/home/latest.py)
    home/status.json          state of the feeds (storage/catalogue/feeds.py)
    home/enriched/, merged/   enriched copies of feeds, and the guide that is merged from them
    home/mlflow.db, mlflow/   MLflow's database and artifacts if there is no MLflow server
    home/prefect/             Prefect's database and settings if there is no Prefect server

An artifact is written to a temporary folder, which is renamed when its ``artifact.json`` (files, sizes,
SHA-256) is complete. A killed run leaves at most one ``*.tmp`` folder, which the next writer removes.
``artifact.json`` has the time of publication. The modification time of the folder is its time of last use.
"""

import datetime
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

from storage.artifacts import Artifact, read_details
from storage.atomic import replaced_folder
from storage.errors import ExpectedError
from storage.home.files import describe_file, folder_size, mark_used
from storage.home.marker import MARKER_FILE, write_marker
from storage.home.zones import ZONE_KEY, home_zone
from storage.json_file import write_json

LAYOUT_VERSION = 1
ArtifactT = TypeVar("ArtifactT", bound=Artifact)
ArtifactTime = Callable[[Path, Mapping[str, Any]], datetime.datetime]  # of path and content of artifact.json


class HomeError(ExpectedError):
    """Error: the home folder cannot be used. The message says why and what to do."""


class HomeLocked(HomeError):
    """Error: another process is writing to the home folder."""


@dataclass
class Draft(Generic[ArtifactT]):
    """Artifact that is being written, and is published at the end of the ``with`` block.

    Attributes:
        kind: Type of the artifact.
        folder: Folder into which the files are written.
        counts: Numbers for display, by name; stored in artifact.json, as are details and made_of.
        details: JSON values for readers of the artifact.
        made_of: Name of the stage, its settings and its inputs (kind, path, digest).
        digest: SHA-256 of the artifact; if None, it is computed from the files.
    """

    kind: type[ArtifactT]
    folder: Path
    counts: dict[str, int] = field(default_factory=dict)
    details: dict[str, object] = field(default_factory=dict)
    made_of: dict[str, object] = field(default_factory=dict)
    digest: str | None = None
    _artifact: ArtifactT | None = None

    @property
    def artifact(self) -> ArtifactT:
        """Returns the published artifact; raises RuntimeError if the ``with`` block has not ended yet."""
        if self._artifact is None:
            raise RuntimeError(f"{self.kind.__name__} is not published before its with block ends")
        return self._artifact


class Workspace:
    """Home folder, in which runs store all results.

    Args:
        home: Path of the home.
        create: Whether to create the home if it is missing.

    Raises:
        HomeError: The home is missing, damaged or of another layout version, or cannot be created.
    """

    def __init__(self, home: str | Path, *, create: bool = True) -> None:
        self.home = Path(home).expanduser().resolve()
        marker = self.home / MARKER_FILE
        if "?" in str(self.home):
            problem = "DuckDB and SQLite interpret text after '?' as options"
            raise HomeError(f"{self.home}: {problem}. Name another --home.")
        if not marker.exists():
            if not create:
                advice = "Run `guidespace nightly` first, or name another --home."
                raise HomeError(f"{self.home} is not a GuideSpace home (no home.json). {advice}")
            if self.home.exists() and not self.home.is_dir():
                raise HomeError(f"{self.home} is a file, expected a folder. Name another --home.")
            try:
                self.home.mkdir(parents=True, exist_ok=True)
                write_json(marker, {"layout_version": LAYOUT_VERSION, ZONE_KEY: home_zone(self.home).key})
            except OSError as error:
                problem = f"cannot create a home in {self.home} ({error.strerror or error})"
                raise HomeError(f"{problem}. Name another --home.") from error
        try:
            version = json.loads(marker.read_text(encoding="utf-8"))["layout_version"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise HomeError(f"{marker} is damaged. Restore this file, or name another --home.") from error
        if version != LAYOUT_VERSION:
            versions = f"layout version {version}, expected version {LAYOUT_VERSION}"
            advice = "Use the GuideSpace version that made it, or name another --home."
            raise HomeError(f"{self.home} has {versions}. {advice}")

    def size(self) -> int:
        """Returns the total size in bytes of all files in the home."""
        return folder_size(self.home)

    @contextmanager
    def writing(
        self,
        what: str,
        *,
        flow_run: str = "",
        wait_seconds: float = 0,
        report_wait: Callable[[str], None] = print,
    ) -> Iterator[str]:
        """Holds the exclusive lock for writing during the block.

        If the process dies, the operating system releases the lock. The yielded text is the id of the Prefect
        flow run that died while it held the lock, or "" if none died. If this writer is not a flow run, the
        id stays in the lock file for the next writer.

        Args:
            what: Description of this writer, which is shown to processes that wait for the lock.
            flow_run: Id of the Prefect flow run that writes; "" if the writer is not a flow run.
            wait_seconds: Maximum time to wait for another writer.
            report_wait: Called once with a message about the other writer before waiting.

        Raises:
            HomeLocked: Another process still holds the lock after ``wait_seconds``.
        """
        file = self.home / "writer.lock"
        with self._acquire_lock(file, wait_seconds, report_wait):
            with suppress(OSError):  # the file belongs to another user
                file.chmod(0o600)
            write_marker(self.home, **{ZONE_KEY: home_zone(self.home).key})  # older versions did not write it
            crashed_run = self._read_lock().get("flow_run", "")
            holder = {"pid": os.getpid(), "host": socket.gethostname(), "what": what}
            holder |= {"flow_run": flow_run or crashed_run, "since": time.strftime("%Y-%m-%d %H:%M:%S")}
            file.write_text(json.dumps(holder), encoding="utf-8")
            for leftover in self.home.glob("artifacts/*/*.tmp"):  # left by killed runs
                if leftover.is_dir():
                    shutil.rmtree(leftover, ignore_errors=True)
                else:
                    leftover.unlink(missing_ok=True)
            try:
                yield crashed_run
            finally:
                text = json.dumps({"flow_run": crashed_run}) if crashed_run and not flow_run else ""
                file.write_text(text, encoding="utf-8")

    def _acquire_lock(
        self, file: Path, wait_seconds: float, report_wait: Callable[[str], None]
    ) -> AcquireReturnProxy:
        """Acquires the lock: tries once, then reports the other writer and waits for at most wait_seconds."""
        lock = FileLock(file, mode=0o600, thread_local=False)
        for seconds in (0.0, wait_seconds):
            try:
                return lock.acquire(seconds, poll_interval=min(1.0, wait_seconds or 1.0))
            except Timeout:
                problem = f"{self.home} is being written by {self.holder() or 'another process'}"
                if wait_seconds and not seconds:
                    report_wait(f"{problem}; waiting up to {wait_seconds / 60:.0f} min for it to end")
            except OSError as error:
                explanation = f"{self.home} cannot be written by this user ({error.strerror or error})"
                raise HomeError(f"{explanation}. Name another --home, or ask its owner.") from error
        raise HomeLocked(f"{problem}. Wait for it to end, or name another --home.")

    def holder(self) -> str | None:
        """Returns a description of the process that holds the lock; None if no process holds the lock."""
        if "pid" not in (holder := self._read_lock()):
            return None
        return f"process {holder['pid']} on {holder['host']} since {holder['since']} ({holder['what']})"

    def _read_lock(self) -> dict[str, str]:
        """Returns the content of the lock file; {} if it is missing, empty or damaged."""
        try:
            return json.loads((self.home / "writer.lock").read_text(encoding="utf-8") or "{}")
        except (OSError, ValueError):
            return {}

    @contextmanager
    def publishing(self, kind: type[ArtifactT], key: str) -> Iterator[Draft[ArtifactT]]:
        """Yields a Draft (new artifact). At the end of the block, its folder becomes ``artifacts/KIND/KEY``.

        If the block raises an exception, the previous version remains. The digest of the artifact covers the
        names and contents of its files, unless the block sets ``draft.digest``.
        """
        target = self.artifact_folder(kind, key)
        with replaced_folder(target, durable=False) as temporary:  # ``read`` verifies the content
            draft = Draft(kind, temporary)
            yield draft
            paths = sorted(file for file in temporary.rglob("*") if file.is_file())
            files = {file.relative_to(temporary).as_posix(): describe_file(file) for file in paths}
            digest = draft.digest or hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
            artifact_json = {"kind": kind.kind, "digest": digest, "files": files, "published_at": _now_text()}
            artifact_json |= {"counts": draft.counts, "details": draft.details, "made_of": draft.made_of}
            write_json(temporary / "artifact.json", artifact_json, sort_keys=True)
        path = target.relative_to(self.home).as_posix()
        draft._artifact = kind(path=path, digest=digest, counts=dict(draft.counts))
        draft.folder = target

    def artifact_folder(self, kind: type[Artifact], key: str) -> Path:
        """Returns the path of the folder of the artifact with a key, which need not exist."""
        return self.home / "artifacts" / kind.kind.lower() / key

    def folder(self, artifact: Artifact) -> Path:
        """Returns the folder of a published artifact; raises HomeError if it is missing."""
        folder = self.home / artifact.path
        if not (folder / "artifact.json").exists():
            problem = f"{type(artifact).__name__} {artifact.path} is not in {self.home}"
            raise HomeError(f"{problem}. Run `guidespace nightly` again to recreate it.")
        return folder

    def read(self, kind: type[ArtifactT], key: str, *, touch: bool = True) -> ArtifactT | None:
        """Returns a published artifact, or None if it is missing or damaged; ``touch`` marks it as used."""
        folder = self.artifact_folder(kind, key)
        try:
            artifact_json = json.loads((folder / "artifact.json").read_text(encoding="utf-8"))
            files = artifact_json["files"].items()
            if any(describe_file(folder / name, expected["size"]) != expected for name, expected in files):
                return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        if touch:
            mark_used(folder)
        path = folder.relative_to(self.home).as_posix()
        return kind(path=path, digest=artifact_json["digest"], counts=artifact_json["counts"])

    def publish_again(self, artifact: Artifact) -> None:
        """Sets the time of publication of an artifact to now, which makes it the newest of its kind."""
        file = self.folder(artifact) / "artifact.json"
        artifact_json = json.loads(file.read_text(encoding="utf-8"))
        write_json(file, {**artifact_json, "published_at": _now_text()}, sort_keys=True)

    def details(self, artifact: Artifact) -> dict[str, Any]:
        """Returns the JSON values that a stage has stored as ``details`` of a published artifact."""
        return read_details(self.folder(artifact))


def _now_text() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")


def published_at(file: Path, content: Mapping[str, Any]) -> datetime.datetime:
    """Returns the time of publication of an artifact, from the path and content of its ``artifact.json``.

    If an older version wrote the file, this is the modification time of the file.
    """
    if "published_at" in content:
        return datetime.datetime.fromisoformat(content["published_at"])
    return datetime.datetime.fromtimestamp(file.stat().st_mtime, datetime.UTC)


def newest_first(
    workspace: Workspace, kind: type[ArtifactT], *, before: str = "", time_of: ArtifactTime = published_at
) -> Iterator[ArtifactT]:
    """Yields the intact artifacts of a kind, newest first, without marking them as used.

    Args:
        workspace: The home.
        kind: Type of the artifacts.
        before: Key of an artifact; if not empty, only artifacts that are older than this one are yielded.
        time_of: Function that returns the time by which artifacts are ordered.
    """
    times: dict[str, datetime.datetime] = {}
    for file in workspace.artifact_folder(kind, "any").parent.glob("*/artifact.json"):
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):  # removed or damaged
            if file.parent.suffix != ".tmp":
                times[file.parent.name] = time_of(file, json.loads(file.read_text(encoding="utf-8")))
    end_time = times.pop(before, None)
    for key in sorted(times, key=times.__getitem__, reverse=True):
        is_older = end_time is None or times[key] < end_time
        if is_older and (artifact := workspace.read(kind, key, touch=False)) is not None:
            yield artifact
