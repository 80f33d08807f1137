"""A feed, its source and the errors about it.

The source is what the catalogue knows a feed by: a file's absolute path (``path!member`` for one of several
guides in a zip), a URL without its secrets (storage/addresses.py), or the reference (``env:NAME``) that it
was given by.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from storage.addresses import without_secrets
from storage.errors import ExpectedError

VARIABLE = "env:"  # names an environment variable that holds a path, a pattern or a URL
BLOCK = "secret:"  # names a Secret block of Prefect; opened by task.py alone
PLAIN = (".xml", ".xmltv", ".gz", ".xz", ".bz2", ".zst")  # what is taken from a zip
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+(?:::|://)", re.IGNORECASE)
_concealed: dict[str, str] = {}  # a URL without secrets: the URL


class FeedError(ExpectedError):
    """A feed cannot be used; the message is one line: the feed, what was found, what was expected."""


class FeedUnreachable(FeedError):
    """The network or the server failed: the same feed may be read later."""

    exit_code = 4


@dataclass(frozen=True, kw_only=True)
class Feed:
    """A guide in a local file: member of a zip (else empty), SHA-256 and size of the file as stored."""

    source: str
    file: Path
    member: str = ""
    content_digest: str
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Named:
    """A location (absolute path or URL) with a source of its own; it may hold secrets and is not shown."""

    location: str = field(repr=False)
    source: str


def is_url(text: str) -> bool:
    """Whether it is http(s) or another scheme of fsspec."""
    return _SCHEME.match(text) is not None


def source_of(location: str | Named) -> str:
    """The source of a resolved location."""
    if isinstance(location, Named):
        return location.source
    return without_secrets(location) if is_url(location) else location


def conceal(given: Sequence[str]) -> list[str]:
    """The feeds without secrets, for Prefect to record; this process resolves them to the full URLs."""
    for feed in given:
        if is_url(feed) and (bare := without_secrets(feed)) != feed:
            _concealed[bare] = feed
    return [without_secrets(feed) if is_url(feed) else feed for feed in given]


def revealed(feed: str) -> str:
    """The full URL of a feed that ``conceal`` returned; any other feed unchanged."""
    return _concealed.get(feed, feed)


def unreadable(source: str, error: OSError) -> FeedError:
    """The error for a file or folder without read permission."""
    problem = f"cannot be read ({error.strerror or error}); give this user the right to read it"
    return FeedError(f"{source}: {problem}")
