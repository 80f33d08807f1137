"""Follows a model at a URL or in a model file (docs/model_file.md) and keeps an unpacked copy in the home.

``FollowedModel.champion`` asks the server for a newer version by a conditional HTTP request. All processes of
a home together send at most one request per CHECK_SECONDS. If the newer version cannot be read, the copy is
used with a warning. The folder ``HOME/models/KEY`` contains ``state.json`` and the last two versions, because
a process may still open files of the previous version.
"""

import base64
import datetime
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from storage.addresses import is_valid_url, without_secrets
from storage.atomic import remove_folder, replaced_folder
from storage.digests import content_digest
from storage.errors import ExpectedError
from storage.formats.model_file import MAX_BYTES, ModelFileError, unpack_model
from storage.home.files import folder_size
from storage.home.retention import RemovalResult
from storage.home.workspace import Workspace
from storage.json_file import write_json
from storage.tracking import Champion
from tasks.ingest.sources.feeds import ENV_PREFIX, is_url

TOKEN_VARIABLE = "GUIDESPACE_MODEL_TOKEN"  # environment variable with the token of the model's server
CHECK_SECONDS, DAY_SECONDS = 60.0, 86_400.0
STATE_KEYS = {"folder", "info", "content", "validators", "checked_at", "problem"}  # of state.json
_SHA256_FIELD = re.compile(r"sha-256=:([A-Za-z0-9+/]{43}=):")
_VERSION_NAME = re.compile("[0-9a-f]{16}")  # name of a folder with a version


class FollowedModel:
    """Model at a URL or in a file, with the attributes and methods of ``Registry`` that commands use.

    Args:
        home: Folder of the home.
        location: URL, path of a model file, or ``env:NAME`` for a variable that contains a URL or a path.
        warn: Called with a message whenever ``champion`` returns a copy because the location cannot be read.

    Raises:
        ModelFileError: The file or the variable is missing, or the URL is invalid.
    """

    def __init__(self, home: Path, location: str, warn: Callable[[str], object]) -> None:
        self.home, self._warn = home, warn
        self._location, self.name = _locate(location)
        self._folder = home / "models" / hashlib.sha256(self._location.encode()).hexdigest()[:16]

    def champion(self) -> Champion:
        """Returns the newest version of the model that can be read.

        If the location cannot be read, calls ``warn`` with the reason and returns the stored copy.

        Raises:
            ExpectedError: The location cannot be read, and there is no stored copy.
        """
        state = self._read_state()
        copy = self._verified_copy(state)
        age = time.time() - state.get("checked_at", 0.0)
        if copy and is_url(self._location) and 0 <= age < CHECK_SECONDS:
            if state["problem"]:
                self._warn(state["problem"])
            return copy
        problem = ""
        try:
            state = self._update(state if copy else {})
        except (ExpectedError, OSError) as error:
            if copy is None and isinstance(error, OSError):
                problem = f"the model cannot be stored in {self._folder} ({error.strerror or error})"
                raise ModelFileError(f"{problem}; name another --home") from error
            if copy is None:
                raise
            problem = f"{error}; the last good version of the model, {copy.version}, is used"
            self._warn(problem)
        state |= {"checked_at": time.time(), "problem": problem}
        with suppress(OSError):  # the user may have no write permission for the home
            write_json(self._folder / "state.json", state)
        return self._to_champion(state)

    def _read_state(self) -> dict[str, Any]:
        """Returns the content of state.json; empty if the file is missing or damaged."""
        with suppress(OSError, ValueError):
            state = json.loads((self._folder / "state.json").read_text(encoding="utf-8"))
            if isinstance(state, dict) and state.keys() >= STATE_KEYS:
                return state
        return {}

    def _to_champion(self, state: dict[str, Any]) -> Champion:
        return Champion(folder=self._folder / state["folder"], **state["info"])

    def _verified_copy(self, state: dict[str, Any]) -> Champion | None:
        """Returns the unpacked copy of the model, or None if it is missing or was changed."""
        if not state or content_digest(self._folder / state["folder"]) != state["content"]:
            return None
        return self._to_champion(state)

    def _update(self, state: dict[str, Any]) -> dict[str, Any]:
        """Unpacks the model at the location if it has changed, and returns the new content of state.json."""
        if not is_url(self._location):
            validators = {"etag": content_digest(self._location), "last_modified": None}
            file = Path(self._location)
            return (
                state if state.get("validators") == validators else self._install(file, validators, "", state)
            )
        from tasks.ingest.settings import IngestSettings
        from tasks.ingest.sources.download import MAX_ATTEMPTS, Validators, download
        from tasks.ingest.sources.feeds import FeedError, FeedUnreachable
        from tasks.ingest.sources.headers import request_headers

        limits = IngestSettings(size_cap_bytes=MAX_BYTES, private_addresses=True)
        attempts = 1 if state else MAX_ATTEMPTS  # if there is a copy, it is used instead of waiting
        token = os.environ.get(TOKEN_VARIABLE, "").strip()
        header_lines = [f"Authorization: Bearer {ENV_PREFIX}{TOKEN_VARIABLE}"] if token else []
        headers = request_headers("", header_lines, self.name)
        folder = self._folder if self._folder.exists() else None  # a wrong URL must not create a home
        with tempfile.TemporaryDirectory(dir=folder, suffix=".tmp") as temporary_folder:
            file = Path(temporary_folder, "model.zip")
            validators = Validators(**state["validators"]) if state else None
            result = download(self._location, file, limits, validators, headers, attempts=attempts)
            if result.problem:
                problem = re.sub(r" \(ingest\.\w+\)", "", result.problem)  # here, the limits are no settings
                needs_token = " 401 " in problem and not token
                hint = f"; set {TOKEN_VARIABLE} to the token of the server" if needs_token else ""
                raise (FeedUnreachable if result.unreachable else FeedError)(f"{self.name}: {problem}{hint}")
            if result.unchanged:
                return state
            return self._install(file, asdict(result.validators), result.digest, state)

    def _install(
        self, file: Path, validators: dict[str, Any], repr_digest: str, state: dict[str, Any]
    ) -> dict[str, Any]:
        """Unpacks a model file as a new version, and returns the new content of state.json.

        Args:
            file: Model file.
            validators: Validators of the file, by which the next check detects a change.
            repr_digest: Value of the HTTP header Repr-Digest; '' if there is none.
            state: Content of state.json; empty if there is no copy.
        """
        try:
            with open(file, "rb") as handle:
                digest = hashlib.file_digest(handle, "sha256")
        except OSError as error:
            raise ModelFileError(f"{self.name} cannot be read: {error.strerror or error}") from error
        header_digest = _SHA256_FIELD.search(repr_digest)
        if header_digest and base64.b64decode(header_digest[1]) != digest.digest():
            problem = "the SHA-256 of the downloaded file differs from the header Repr-Digest"
            raise ModelFileError(f"{self.name}: {problem}; it was damaged in transit; run the command again")
        folder = self._folder / digest.hexdigest()[:16]
        if folder.name == state.get("folder"):
            return {**state, "validators": validators}
        try:
            with replaced_folder(folder, durable=False) as new_folder:  # ``champion`` verifies its content
                info = unpack_model(file, new_folder)
                Workspace(self.home)  # creates the home if it is missing
        except ModelFileError as error:
            with suppress(OSError):  # the folder is not empty
                self._folder.rmdir()
                self._folder.parent.rmdir()
            raise ModelFileError(f"{self.name}: {error}") from error
        self._remove_other_versions(folder.name, state.get("folder", ""))
        new_state = {"model": self.name, "folder": folder.name, "info": asdict(info)}
        return {**new_state, "content": content_digest(folder), "validators": validators}

    def _remove_other_versions(self, *names: str) -> None:
        """Removes all versions except those in ``names``, and temporary folders of killed processes."""
        for path in self._folder.iterdir():
            with suppress(FileNotFoundError):  # removed by another process
                age = time.time() - path.stat().st_mtime
                is_version = _VERSION_NAME.fullmatch(path.name) and path.name not in names
                if is_version or (path.suffix == ".tmp" and age > DAY_SECONDS):
                    shutil.rmtree(path, ignore_errors=True)


def prune_models(home: Path, used_before: datetime.datetime, *, dry_run: bool = False) -> RemovalResult:
    """Removes copies of models that were last used before an instant. If ``dry_run``, only counts them."""
    folders: list[Path] = []
    for state_file in (home / "models").glob(f"{'[0-9a-f]' * 16}/state.json"):
        with suppress(OSError, ValueError, KeyError, TypeError):
            if json.loads(state_file.read_text(encoding="utf-8"))["checked_at"] < used_before.timestamp():
                folders.append(state_file.parent)
    result = RemovalResult(what="copies of models", count=len(folders), bytes=sum(map(folder_size, folders)))
    for folder in folders if not dry_run else ():
        (folder / "state.json").unlink()
        for version in folder.iterdir():
            if _VERSION_NAME.fullmatch(version.name) or version.suffix == ".tmp":
                remove_folder(version)
        with suppress(OSError):  # the folder contains other files
            folder.rmdir()
    return result


def _locate(reference: str) -> tuple[str, str]:
    """Returns the URL or absolute path of the model ``reference``, and its name in messages (no secrets)."""
    is_variable = reference.startswith(ENV_PREFIX)
    location = os.environ.get(reference.removeprefix(ENV_PREFIX), "").strip() if is_variable else reference
    if not location:
        raise ModelFileError(
            f"{reference}: this environment variable is not set, or empty; expected a URL or a path"
        )
    name = reference if is_variable else without_secrets(location)
    if is_url(location):
        if not is_valid_url(location):
            raise ModelFileError(f"{name}: not a valid URL; expected one such as https://host:8500/model")
        return location, name
    path = Path(location).expanduser().absolute()
    if not path.is_file():
        raise ModelFileError(f"{name}: no such file; expected a model file or a URL")
    return str(path), name if is_variable else str(path)
