"""Feeds, their sources, and errors about them.

The source identifies a feed in the catalogue: the absolute path of a file (``path!member`` for one of several
guides in a zip), a URL without secrets (storage/addresses.py), or a reference (``env:NAME``).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from storage.addresses import without_secrets
from storage.errors import ExpectedError

ENV = "env:"  # prefix of an environment variable that contains a path, a pattern or a URL
SECRET = "secret:"  # prefix of a Secret block of Prefect, which only task.py opens
SUFFIXES = (".xml", ".xmltv", ".gz", ".xz", ".bz2", ".zst")  # suffixes of guides in a zip
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+(?:::|://)", re.IGNORECASE)
_concealed: dict[str, str] = {}  # maps a URL without secrets to the full URL


class FeedError(ExpectedError):
    """A feed cannot be used. The message has one line: source, problem and what is expected."""


class FeedUnreachable(FeedError):
    """The network or the server failed; the feed may be readable later."""

    exit_code = 4


@dataclass(frozen=True, kw_only=True)
class Feed:
    """A guide in a local file."""

    source: str
    file: Path
    member: str = ""  # path in a zip; empty if the file is not a zip
    content_digest: str  # SHA-256 of the file
    bytes: int  # size of the file


@dataclass(frozen=True, kw_only=True)
class NamedFeed:
    """A location (absolute path or URL, which may contain secrets) whose source is given separately.

    ``problem`` says why there is no location, or is empty.
    """

    location: str = field(repr=False)
    source: str
    problem: str = ""


def is_url(text: str) -> bool:
    """Returns whether a text is a URL: http(s) or another scheme of fsspec."""
    return _SCHEME.match(text) is not None


def source_of(location: str | NamedFeed) -> str:
    """Returns the source of a resolved location."""
    if isinstance(location, NamedFeed):
        return location.source
    return without_secrets(location) if is_url(location) else location


def conceal(references: Sequence[str]) -> list[str]:
    """Removes secrets from feeds, because Prefect records them; ``reveal`` restores the secrets."""
    for feed in references:
        if is_url(feed) and (bare := without_secrets(feed)) != feed:
            _concealed[bare] = feed
    return [without_secrets(feed) if is_url(feed) else feed for feed in references]


def reveal(feed: str) -> str:
    """Returns the full URL of a feed that ``conceal`` returned; any other feed unchanged."""
    return _concealed.get(feed, feed)


def access_denied(source: str, error: OSError) -> FeedError:
    """Returns the error for a file or folder that cannot be read, mostly without read permission."""
    advice = "give this user read permission" if isinstance(error, PermissionError) else "name another path"
    return FeedError(f"{source}: cannot be read ({error.strerror or error}); {advice}")
