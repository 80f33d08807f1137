"""From what the user names (paths, globs, directories, URLs, object stores) to feeds: files at hand, with a source and a digest.

The source is what the catalogue knows a feed by: a file's absolute path (``path!member`` inside a zip that holds several
guides), a URL without its credentials. The digest is SHA-256 over the bytes as stored, compressed or not.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import fsspec

from tasks.ingest import cut_zip
from tasks.ingest.download import Validators, download

PLAIN = (".xml", ".xmltv", ".gz", ".xz", ".bz2", ".zst")  # what is taken from a zip
SUFFIXES = (*PLAIN, ".zip")  # and from a directory
_SECRETS = re.compile(r"(?<=[?&])((?:api_?)?key|token|auth|pass(?:word)?|user(?:name)?|sig(?:nature)?)=[^&]*", re.IGNORECASE)


_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+(?:::|://)", re.IGNORECASE)


class FeedError(Exception):
    """A feed cannot be used; the message is one line that names the feed, what was found and what was expected."""


class FeedUnreachable(FeedError):
    """The network or the server failed: the same feed may be read later."""


@dataclass(frozen=True, kw_only=True)
class Feed:
    """One guide at hand.

    Attributes:
        source: What the catalogue knows it by.
        file: Where its bytes are.
        member: Name inside the zip; empty where the file is no zip.
        content_digest: SHA-256 of the file's bytes.
        bytes: Their number.
    """

    source: str
    file: Path
    member: str = ""
    content_digest: str
    bytes: int


def resolve(given: Sequence[str]) -> list[str]:
    """Absolute paths and URLs, each once, in the order given (globs and directories sorted).

    Raises:
        FeedError: A path is missing, a glob matches nothing, a directory holds no guide, or nothing was given.
    """
    found: dict[str, None] = {}
    for text in given:
        if is_url(text):
            found.update((url, None) for url in _expanded(text))
            continue
        path = Path(text).expanduser()
        if path.is_dir():
            files = [str(file) for file in sorted(path.iterdir()) if file.is_file() and file.name.lower().endswith(SUFFIXES)]
            problem = f"{text}: no guide in this directory; expected files ending in {' '.join(SUFFIXES)}"
        elif path.exists():
            files, problem = [str(path)], ""
        else:
            files = sorted(file for file in glob.glob(str(path), recursive=True) if os.path.isfile(file))
            is_glob = glob.has_magic(str(path))
            problem = f"{text}: the pattern matches no file" if is_glob else f"{text}: no such file; expected a path, a pattern, a directory or a URL"
        if not files:
            raise FeedError(problem)
        found.update((os.path.abspath(file), None) for file in files)
    if not found:
        raise FeedError("no feed given; name a file, a pattern, a directory or a URL")
    return list(found)


def is_url(text: str) -> bool:
    """Whether it is fetched from elsewhere: http(s), or a scheme of fsspec's."""
    return _SCHEME.match(text) is not None


def _expanded(url: str) -> list[str]:
    """The URLs that a pattern on an object store stands for; any other URL as it is (? and * mean nothing in http)."""
    if url.lower().startswith(("http://", "https://")) or not glob.has_magic(url):
        return [url]
    try:
        system, pattern = fsspec.core.url_to_fs(url)
        system.invalidate_cache()
        found = sorted(str(system.unstrip_protocol(path)) for path in system.glob(pattern))
    except Exception as error:  # each store has kinds of its own
        kind = FeedError if isinstance(error, ImportError | ValueError | FileNotFoundError | PermissionError) else FeedUnreachable
        raise kind(f"{without_credentials(url)}: cannot be listed ({' '.join(str(error).split())[:200]})") from error
    if not found:
        raise FeedError(f"{without_credentials(url)}: the pattern matches no file")
    return found


def without_credentials(url: str) -> str:
    """The URL without user and password, and without the values of parameters that are keys or tokens."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, _SECRETS.sub(r"\1=", "?" + parts.query)[1:], ""))


@dataclass(frozen=True, kw_only=True)
class AtHand:
    """What one location came to.

    Attributes:
        feeds: The guides it holds; none where it is unchanged.
        unchanged: It is what it was when it was read last, and was not fetched.
        validators: What the server says of it; None for a local file.
    """

    feeds: list[Feed]
    unchanged: bool = False
    validators: Validators | None = None


@contextmanager
def at_hand(location: str, home: Path, size_cap_bytes: int, source: str = "", known: Validators | None = None) -> Iterator[AtHand]:
    """The feeds of one resolved location; what is fetched lies in the home and is removed after the block.

    Args:
        source: What the catalogue shall know it by; empty is the location, without credentials.
        known: What the server said when it was read last.

    Raises:
        FeedError: It cannot be fetched or read, or is empty.
    """
    if not is_url(location):
        yield AtHand(feeds=_describe(Path(location), source or location))
        return
    source = source or without_credentials(location)
    place = home / "downloads" / f"{hashlib.sha256(location.encode()).hexdigest()[:16]}.{os.getpid()}"
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        answer = download(location, place, size_cap_bytes, known)
        if answer.problem:
            raise (FeedUnreachable if answer.unreachable else FeedError)(f"{source}: {answer.problem}")
        yield AtHand(feeds=[] if answer.unchanged else _describe(place, source), unchanged=answer.unchanged, validators=answer.validators)
    finally:
        place.unlink(missing_ok=True)


def _describe(file: Path, source: str) -> list[Feed]:
    """Digest and size of a file; several feeds where it is a zip of several guides."""
    digest = hashlib.sha256()
    size = 0
    try:
        with open(file, "rb") as handle:
            while block := handle.read(1 << 20):
                digest.update(block)
                size += len(block)
    except OSError as error:
        raise FeedError(f"{source}: cannot be read ({error.strerror})") from error
    if size == 0:
        raise FeedError(f"{source}: empty file (0 bytes); expected XMLTV")
    return [Feed(source=name, file=file, member=member, content_digest=digest.hexdigest(), bytes=size) for name, member in guides_in(file, source)]


def guides_in(file: Path, source: str) -> list[tuple[str, str]]:
    """Source and member of the guides in a file: of a zip those with the endings of guides, or its only member whatever its name; else the file.

    Of a zip that is cut off, those up to the cut; a zip of several guides that is cut within its first is taken for one of a single guide.

    Raises:
        FeedError: A zip holds none, or its list of members cannot be read.
    """
    with open(file, "rb") as handle:
        if handle.read(4) != b"PK\x03\x04":
            return [(source, "")]
    try:
        with zipfile.ZipFile(file) as archive:
            names = [info.filename for info in archive.infolist() if not info.is_dir()]
    except (zipfile.BadZipFile, NotImplementedError, OSError) as error:
        with open(file, "rb") as handle:
            names = [member.name for member in cut_zip.members_of(handle) if not member.name.endswith("/")]
        if not names:
            raise FeedError(f"{source}: damaged zip ({error}); nothing in it can be read") from error
    guides = names if len(names) == 1 else sorted({name for name in names if name.lower().endswith(PLAIN)})
    if not guides:
        raise FeedError(f"{source}: no guide in this zip of {len(names)} files; expected names ending in {' '.join(PLAIN)}")
    return [(source if len(guides) == 1 else f"{source}!{member}", member) for member in guides]
