"""Packs a Model folder into one file for other machines, and unpacks such files (docs/model_file.md).

A model file is a zip archive of uncompressed members. The first member is ``manifest.json``, which contains
the format version, the version and digest of the model, and the size and SHA-256 of each part. Then follow
the parts, which are the files of the Model folder, in alphabetical order. The dates in the archive are fixed,
so packing the same model again gives the same bytes. Compression would make the file only 7 % smaller.

A model file may come from an untrusted machine. The reader therefore accepts only names that the format
defines, never overwrites a file, verifies sizes and digests, and rejects arrays with pickled objects.
"""

import errno
import hashlib
import json
import re
import stat
import tokenize
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import numpy as np

from storage.atomic import replaced_file
from storage.errors import ExpectedError
from storage.home.files import describe_file

FORMAT_NAME, FORMAT_VERSION = "guidespace-model", 1  # values of "format" and "format_version" in the manifest
MANIFEST = "manifest.json"
MEDIA_TYPE = "application/vnd.guidespace.model+zip"
MAX_BYTES = 2**32  # maximum size of a model file
MAX_MANIFEST_BYTES = 2**20
REQUIRED_PARTS = {"lexicon.json", "rows.safetensors", "titles.parquet", "tokens.parquet"}
_PART_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}\.(json|npy|parquet|safetensors)")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_VERSION = re.compile(r"[A-Za-z0-9_.+-]{1,64}")
_EARLIEST_DATE = (1980, 1, 1, 0, 0, 0)  # earliest date that a zip archive can contain
_BLOCK_BYTES = 1 << 20


class ModelFileError(ExpectedError, ValueError):
    """Error: a model file cannot be used. The message contains the reason and a remedy."""


@dataclass(frozen=True, kw_only=True)
class ModelIdentity:
    """Version of a model in the MLflow registry, and digest of its Model folder."""

    version: str
    digest: str


def write_model_file(folder: Path, identity: ModelIdentity, model_file: Path) -> None:
    """Packs a Model folder into a model file. An existing file is replaced atomically."""
    with replaced_file(model_file) as new_file, open(new_file, "wb") as handle:
        pack_model(folder, identity, handle)


def pack_model(folder: Path, identity: ModelIdentity, handle: IO[bytes]) -> None:
    """Packs a Model folder into an open binary file."""
    parts = {file.name: file for file in sorted(folder.iterdir()) if _PART_NAME.fullmatch(file.name)}
    parts.pop("artifact.json", None)  # describes the home
    part_descriptions = {name: describe_file(file) for name, file in parts.items()}
    versions = {"format": FORMAT_NAME, "format_version": FORMAT_VERSION, "guidespace": version("guidespace")}
    manifest = json.dumps({**versions, **asdict(identity), "parts": part_descriptions}, indent=1)
    with zipfile.ZipFile(handle, "w") as archive:
        archive.writestr(zipfile.ZipInfo(MANIFEST, _EARLIEST_DATE), manifest)
        for name, file in parts.items():
            member = zipfile.ZipInfo(name, _EARLIEST_DATE)
            member.file_size = file.stat().st_size  # zipfile needs the size to decide whether to use ZIP64
            with open(file, "rb") as source, archive.open(member, "w") as target:
                while block := source.read(_BLOCK_BYTES):
                    target.write(block)


def unpack_model(file: Path, folder: Path) -> ModelIdentity:
    """Verifies a model file, and unpacks it into an empty folder, which becomes a Model folder.

    Returns:
        Version and digest of the model.

    Raises:
        ModelFileError: The file is damaged or too large, has another format, or contains members that the
            format does not define.
    """
    if (size := file.stat().st_size) > MAX_BYTES:
        raise ModelFileError(f"the model file has {size:,} bytes; the limit is {MAX_BYTES:,}")
    try:
        with zipfile.ZipFile(file) as archive:
            members = _read_members(archive, size)
            manifest = _read_manifest(archive, members)
            for name, expected in manifest["parts"].items():
                _extract(archive, members[name], expected, folder / name)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, UnicodeDecodeError) as error:
        raise _damaged_error(f"{error}") from error
    except OSError as error:
        # A damaged file may cause a seek to an invalid position (EINVAL). Other OSErrors have other causes,
        # such as a full disk.
        if error.errno != errno.EINVAL:
            raise
        raise _damaged_error(f"{error}") from error
    return ModelIdentity(version=manifest["version"], digest=manifest["digest"])


def _read_members(archive: zipfile.ZipFile, file_bytes: int) -> dict[str, zipfile.ZipInfo]:
    """Returns the members of an archive by name.

    Raises:
        ModelFileError: The format does not allow one of the members.
    """
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        name = member.filename
        if name in members or (name != MANIFEST and not _PART_NAME.fullmatch(name)):
            raise _format_error(f"a member named {name!r}")
        if stat.S_ISLNK(member.external_attr >> 16) or member.flag_bits & 1:
            raise _format_error(f"a link or an encrypted member ({name})")
        if member.compress_type != zipfile.ZIP_STORED:
            raise _format_error(f"a compressed member ({name})")
        members[name] = member
    if sum(member.file_size for member in members.values()) > file_bytes:
        raise _format_error("members that overlap")
    return members


def _read_manifest(archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo]) -> dict[str, Any]:
    member = members.get(MANIFEST)
    if member is None or member.file_size > MAX_MANIFEST_BYTES:
        raise _format_error(f"no {MANIFEST} of at most {MAX_MANIFEST_BYTES:,} bytes")
    try:
        manifest = json.loads(archive.read(member))
        format_name, format_version = manifest["format"], manifest["format_version"]
        if format_name != FORMAT_NAME or format_version != FORMAT_VERSION:
            remedy = "update GuideSpace on the machine with the older version"
            raise ModelFileError(
                f"the model file has format {format_name!r} version {format_version!r}; this version reads "
                f"{FORMAT_NAME!r} version {FORMAT_VERSION}: {remedy}"
            )
        parts, sizes = manifest["parts"], {}
        for part, expected in parts.items():
            sizes[part] = expected["size"]
            _require(_DIGEST.fullmatch(expected["sha256"]), f"no SHA-256 of {part}")
        _require(_DIGEST.fullmatch(manifest["digest"]), "no digest of the model")
        _require(_VERSION.fullmatch(manifest["version"]), "no version of the model")
    except ModelFileError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged_error(f"{MANIFEST}: {error!r}") from error
    member_sizes = {name: member.file_size for name, member in members.items() if name != MANIFEST}
    _require(sizes == member_sizes, "other parts or sizes than the archive")
    missing_parts = REQUIRED_PARTS - parts.keys()
    _require(not missing_parts, f"no entry for {', '.join(sorted(missing_parts))}")
    return manifest


def _require(is_valid: object, problem: str) -> None:
    """Raises a ModelFileError unless ``is_valid``; ``problem`` is what the manifest contains or lacks."""
    if not is_valid:
        raise _damaged_error(f"{MANIFEST} has {problem}")


def _extract(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, expected: Mapping[str, Any], target: Path
) -> None:
    digest = hashlib.sha256()
    with archive.open(member) as source, open(target, "xb") as target_file:
        while block := source.read(_BLOCK_BYTES):
            digest.update(block)
            target_file.write(block)
    if digest.hexdigest() != expected["sha256"]:
        raise _damaged_error(f"the SHA-256 of {member.filename} differs from the one in {MANIFEST}")
    if target.suffix == ".npy":
        try:
            np.lib.format.open_memmap(target, mode="r")
        # The array contains pickled Python objects, has a wrong size, or a damaged header.
        except (ValueError, OverflowError, tokenize.TokenError) as error:
            raise _format_error(f"an array that cannot be mapped ({member.filename}: {error})") from error


def _damaged_error(reason: str) -> ModelFileError:
    return ModelFileError(f"the model file is damaged or incomplete ({reason}); download or write it again")


def _format_error(content: str) -> ModelFileError:
    remedy = "use a file of `guidespace export --format model` or of the path /model of `guidespace serve`"
    return ModelFileError(f"the file is not a model file, because it contains {content}; {remedy}")
