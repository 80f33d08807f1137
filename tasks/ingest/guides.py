"""The guides in a file: itself, or those members of a zip that are guides by their content."""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import file_digest
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from tasks.ingest import json_lines
from tasks.ingest.sources.decompress import FeedStream
from tasks.ingest.sources.feeds import PLAIN, Feed, FeedError
from tasks.ingest.sources.zip import list_members
from tasks.ingest.xmltv.prolog import read_prolog


class Guides(NamedTuple):
    """The feeds of a file, and the members of a zip that are no guides."""

    feeds: list[Feed]
    passed_over: Sequence[str] = ()


def describe_file(file: Path, source: str, size_cap_bytes: int) -> Guides:
    """The guides in a file, with its digest and size.

    Raises:
        FeedError: The file cannot be read or is empty, or see ``find_guides``.
    """
    try:
        with open(file, "rb") as handle:
            digest, size = file_digest(handle, "sha256").hexdigest(), handle.tell()
    except OSError as error:
        raise FeedError(f"{source}: cannot be read ({error.strerror})") from error
    if size == 0:
        raise FeedError(f"{source}: empty file (0 bytes); expected XMLTV")
    return find_guides(Feed(source=source, file=file, content_digest=digest, bytes=size), size_cap_bytes)


def find_guides(file: Feed, size_cap_bytes: int) -> Guides:
    """The guides in a file.

    A member that has a guide's suffix and cannot be opened counts as one: reading it fails, and says why. The
    source of the only guide is that of the file, also when other members come and go.

    Raises:
        FeedError: A zip holds no guide, or its members cannot be listed.
    """
    members = list_members(file.file, file.source)
    if not members:
        return Guides([file])
    candidates = [member for member in members if not _is_metadata(member)]
    guides = [replace(file, member=member) for member in candidates]
    if len(candidates) != 1:
        guides = [feed for feed in guides if _is_guide(feed, size_cap_bytes)]
    if not guides:
        named = ", ".join(members[:5]) + " …" * (len(members) > 5)
        raise FeedError(f"{file.source}: no guide in this zip of {len(members)} files ({named})")
    if len(guides) > 1:
        guides = [replace(feed, source=f"{file.source}!{feed.member}") for feed in guides]
    kept = {feed.member for feed in guides}
    return Guides(guides, [member for member in members if member not in kept])


def _is_metadata(member: str) -> bool:
    """Whether a member is what systems put beside files (__MACOSX/._guide.xml, .DS_Store)."""
    path = PurePosixPath(member)
    return path.name.startswith("._") or path.name in (".DS_Store", "Thumbs.db") or "__MACOSX" in path.parts


def _is_guide(feed: Feed, size_cap_bytes: int) -> bool:
    stream, head = FeedStream(feed, size_cap_bytes), b""
    try:
        head = next(iter(stream), b"")
        if json_lines.matches(head):
            return b'"channel"' in head
        read_prolog(iter([head]), feed.source)
    except FeedError:
        return (bool(stream.damage) or not head.strip()) and feed.member.lower().endswith(PLAIN)
    return True
