"""From what the user names (paths, globs, directories, URLs, object stores) to feeds: files at hand, with a source and a digest.

The source is what the catalogue knows a feed by: a file's absolute path (``path!member`` inside a zip
that holds several guides), a URL without what is secret in it (storage/addresses.py), or the reference
``env:NAME`` that it was given by. The digest is SHA-256 over the bytes as stored, compressed or not.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import fsspec

from storage.addresses import is_sound, without_secrets
from tasks.ingest import cut_zip
from tasks.ingest.download import Limits, Validators, download, message_of
from tasks.ingest.patterns import files_of

PLAIN = (".xml", ".xmltv", ".gz", ".xz", ".bz2", ".zst")  # what is taken from a zip
SUFFIXES = (*PLAIN, ".zip")  # and from a directory
VARIABLE = "env:"  # names an environment variable that holds a path, a pattern or a URL
BLOCK = "secret:"  # names a Secret block of Prefect; opened by task.py alone
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+(?:::|://)", re.IGNORECASE)
_MISTYPED = re.compile(r"(?:https?|s?ftp|s3|gs)(?::|//)", re.IGNORECASE)  # of what is no URL


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


@dataclass(frozen=True, kw_only=True)
class Named:
    """A feed with a name of its own: its location may hold secrets, and is not shown.

    Attributes:
        location: Absolute path or URL.
        source: What the catalogue knows it by.
    """

    location: str = field(repr=False)
    source: str


def resolve(given: Sequence[str | Named]) -> list[str | Named]:
    """Absolute paths and URLs, each once, in the order given (globs and directories sorted).

    A URL that was given by a reference is Named by it.

    Raises:
        FeedError: A path is missing, a glob matches nothing, a directory holds no guide, a URL is none, two
            URLs are one source, or nothing was given.
    """
    found: dict[str | Named, None] = {}
    for feed in given:
        name, text = (feed.source, feed.location) if isinstance(feed, Named) else _opened(feed)
        if is_url(text):
            urls = _expanded(text, name)
            is_one = bool(name) and urls == [text]
            found.update((Named(location=url, source=name) if is_one else url, None) for url in urls)
            continue
        if _MISTYPED.match(text) and not os.path.exists(text):
            raise _no_url(re.split("[?#]", text.rpartition("@")[2])[0])
        path = Path(text).expanduser()
        if path.is_dir():
            files = [str(file) for file in sorted(path.iterdir()) if file.is_file() and file.name.lower().endswith(SUFFIXES)]
            problem = f"{text}: no guide in this directory; expected files ending in {' '.join(SUFFIXES)}"
        elif path.exists():
            files, problem = [str(path)], ""
        else:
            files = files_of(str(path))
            is_glob = glob.has_magic(str(path))
            problem = f"{text}: the pattern matches no file" if is_glob else f"{text}: no such file; expected a path, a pattern, a directory or a URL"
        if not files:
            raise FeedError(problem)
        found.update((os.path.abspath(file), None) for file in files)
    if not found:
        raise FeedError("no feed given; name a file, a pattern, a directory or a URL")
    refuse_twins(found)
    return list(found)


def source_of(location: str | Named) -> str:
    """What the catalogue knows a resolved location by."""
    if isinstance(location, Named):
        return location.source
    return without_secrets(location) if is_url(location) else location


def conceal(given: Sequence[str]) -> list[str]:
    """The feeds without secrets, for Prefect to record; this process resolves them to the whole ones."""
    for feed in given:
        if is_url(feed) and (bare := without_secrets(feed)) != feed:
            _concealed[bare] = feed
    return [without_secrets(feed) if is_url(feed) else feed for feed in given]


_concealed: dict[str, str] = {}  # a URL without secrets: the URL


def _opened(text: str) -> tuple[str, str]:
    """The name of a reference, if it is one, and what it stands for."""
    if text.startswith(BLOCK):
        raise FeedError(f"{text}: a Secret block is opened in runs of Prefect only; expected {VARIABLE}NAME")
    if not text.startswith(VARIABLE):
        return "", _concealed.get(text, text)
    value = os.environ.get(text.removeprefix(VARIABLE), "").strip()
    if not value:
        raise FeedError(f"{text}: this environment variable is not set, or empty; expected a path or URL")
    return text, value


def _no_url(shown: str) -> FeedError:
    return FeedError(
        f"{shown}: not a valid URL; expected one such as https://host:8080/guide.xml.gz, with @ / : ? # "
        "in user and password written as %40 %2F %3A %3F %23"
    )


def refuse_twins(locations: Iterable[str | Named]) -> None:
    """Two URLs that are one source would replace each other's programmes.

    Raises:
        FeedError: There are two.
    """
    seen: dict[str, str | Named] = {}
    for location in locations:
        source = source_of(location)
        if source in seen:
            raise FeedError(
                f"{source}: given twice, with a different user, password or parameter that is no part of "
                "its name (docs/feeds.md). If they are one feed, leave one out; if they are two, put each "
                f"URL into an environment variable and give {VARIABLE}NAME"
            )
        seen[source] = location


def is_reference(text: str) -> bool:
    """Whether it names an environment variable or a Secret block that holds the feed."""
    return text.startswith((VARIABLE, BLOCK))


def is_url(text: str) -> bool:
    """Whether it is fetched from elsewhere: http(s), or a scheme of fsspec's."""
    return _SCHEME.match(text) is not None


def _expanded(url: str, name: str) -> list[str]:
    """The URLs that a pattern on an object store stands for; any other URL as it is (? and * mean nothing in http)."""
    shown = name or without_secrets(url)
    if not is_sound(url):
        raise _no_url(shown)
    if url.lower().startswith(("http://", "https://")) or not glob.has_magic(url):
        return [url]
    try:
        system, pattern = fsspec.core.url_to_fs(url)
        system.invalidate_cache()
        found = sorted(str(system.unstrip_protocol(path)) for path in system.glob(pattern))
    except Exception as error:  # each store has kinds of its own
        is_final = isinstance(error, ImportError | ValueError | FileNotFoundError | PermissionError)
        kind = FeedError if is_final else FeedUnreachable
        # from None: the cause may hold credentials
        raise kind(f"{shown}: cannot be listed ({message_of(error, url)})") from None
    if not found:
        raise FeedError(f"{shown}: the pattern matches no file")
    return found


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
def at_hand(
    location: str, home: Path, limits: Limits, source: str = "", known: Validators | None = None
) -> Iterator[AtHand]:
    """The feeds of one resolved location; what is fetched lies in the home and is removed after the block.

    Args:
        limits: Of size, time and rate.
        source: What the catalogue shall know it by; empty is the location, without secrets.
        known: What the server said when it was read last.

    Raises:
        FeedError: It cannot be fetched or read, or is empty.
    """
    if not is_url(location):
        yield AtHand(feeds=_describe(Path(location), source or location))
        return
    source = source or without_secrets(location)
    place = home / "downloads" / f"{hashlib.sha256(location.encode()).hexdigest()[:16]}.{os.getpid()}"
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        answer = download(location, place, limits, known)
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
