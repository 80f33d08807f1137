"""Lists the TV guides in a file: the file itself, or the members of a zip archive that contain a guide."""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import file_digest
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from tasks.ingest import json_lines
from tasks.ingest.sources.decompress import FeedStream
from tasks.ingest.sources.feeds import GUIDE_SUFFIXES, Feed, FeedError
from tasks.ingest.sources.zip import list_members
from tasks.ingest.xmltv.prolog import read_prolog


class Guides(NamedTuple):
    """The TV guides in a file, and the names of other members if the file is a zip archive."""

    feeds: list[Feed]
    skipped: Sequence[str] = ()  # members of the zip that are not guides


def list_file_guides(file: Path, source: str, size_cap_bytes: int) -> Guides:
    """Computes digest and size of a file, and lists the TV guides in the file.

    Args:
        file: The file.
        source: Name of the feed.
        size_cap_bytes: Maximum uncompressed size of a guide.

    Raises:
        FeedError: The file cannot be read or is empty, or ``find_guides`` fails.
    """
    try:
        with open(file, "rb") as handle:
            digest, size = file_digest(handle, "sha256").hexdigest(), handle.tell()
    except OSError as error:
        raise FeedError(f"{source}: cannot be read ({error.strerror})") from error
    if size == 0:
        raise FeedError(f"{source}: empty file (0 bytes); expected XMLTV")
    return find_guides(Feed(source=source, file=file, content_digest=digest, bytes=size), size_cap_bytes)


def find_guides(file_feed: Feed, size_cap_bytes: int) -> Guides:
    """Lists the TV guides in a file; each guide in a zip archive becomes a feed.

    An unreadable member with the suffix of a guide counts as a guide, so that the error is reported when it
    is read. If a zip contains only one guide, the source (name) of the guide is the source of the zip, so
    that adding a readme to the zip does not change the source.

    Args:
        file_feed: Feed that describes the file, without a member.
        size_cap_bytes: Maximum uncompressed size of a guide.

    Raises:
        FeedError: A zip contains no guide, or the members of the zip cannot be listed.
    """
    members = list_members(file_feed.file, file_feed.source)
    if not members:
        return Guides([file_feed])
    candidate_members = [member for member in members if not _is_metadata(member)]
    guides = [replace(file_feed, member=member) for member in candidate_members]
    if len(candidate_members) != 1:
        guides = [feed for feed in guides if _is_guide(feed, size_cap_bytes)]
    if not guides:
        names = ", ".join(members[:5]) + " …" * (len(members) > 5)
        raise FeedError(
            f"{file_feed.source}: no guide in this zip of {len(members)} files ({names}); expected XMLTV"
        )
    if len(guides) > 1:
        guides = [replace(feed, source=f"{file_feed.source}!{feed.member}") for feed in guides]
    guide_members = {feed.member for feed in guides}
    return Guides(guides, [member for member in members if member not in guide_members])


def _is_metadata(member: str) -> bool:
    """Returns whether a zip member is metadata of an operating system (__MACOSX/._guide.xml, .DS_Store)."""
    path = PurePosixPath(member)
    return path.name.startswith("._") or path.name in (".DS_Store", "Thumbs.db") or "__MACOSX" in path.parts


def _is_guide(feed: Feed, size_cap_bytes: int) -> bool:
    """Returns whether a zip member is a guide. An unreadable or blank member needs the suffix of a guide."""
    stream, head = FeedStream(feed, size_cap_bytes), b""
    try:
        head = next(iter(stream), b"")
        if json_lines.matches(head):
            return b'"channel"' in head
        read_prolog(iter([head]), feed.source)
    except FeedError:
        return (bool(stream.damage) or not head.strip()) and feed.member.lower().endswith(GUIDE_SUFFIXES)
    return True
