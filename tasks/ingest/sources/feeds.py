"""Defines feeds, their names in the catalogue, and errors about feeds.

The name of a feed in the catalogue is called its source: the absolute path of a file (``path!member`` for one
of several guides in a zip), a URL without secrets (storage/addresses.py), or a reference (``env:NAME``).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from storage.addresses import without_secrets
from storage.errors import ExpectedError

ENV_PREFIX = "env:"  # prefix of the name of an environment variable that contains a path, a pattern or a URL
SECRET_PREFIX = "secret:"  # prefix of the name of a Secret block of Prefect; only task.py opens Secret blocks
GUIDE_SUFFIXES = (".xml", ".xmltv", ".gz", ".xz", ".bz2", ".zst")  # file name suffixes of guides in a zip
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+(?:::|://)", re.IGNORECASE)
_full_urls: dict[str, str] = {}  # URL without secrets -> URL with secrets


class FeedError(ExpectedError):
    """Error: a feed cannot be used. The message has one line: name of the feed, problem, and remedy."""


class FeedUnreachable(FeedError):
    """Error: a feed cannot be fetched because the network or the server failed. A retry may succeed."""

    exit_code = 4


@dataclass(frozen=True, kw_only=True)
class Feed:
    """Guide in a local file, which may be a zip archive or compressed."""

    source: str  # name of the feed in the catalogue
    file: Path
    member: str = ""  # path in a zip; empty if the file is not a zip
    content_digest: str  # SHA-256 of the file
    bytes: int  # size of the file


@dataclass(frozen=True, kw_only=True)
class NamedFeed:
    """Path or URL of a feed, which may contain secrets, and the source (name) of the feed in the catalogue.

    ``problem`` states why the location is unknown; it is empty if the location is known.
    """

    location: str = field(repr=False)
    source: str
    problem: str = ""


def is_url(text: str) -> bool:
    """Returns whether a text is a URL: it starts with a scheme such as https://, s3:// or zip::."""
    return _SCHEME.match(text) is not None


def source_of(location: str | NamedFeed) -> str:
    """Returns the source (name of the feed in the catalogue) for an absolute path or a URL."""
    if isinstance(location, NamedFeed):
        return location.source
    return without_secrets(location) if is_url(location) else location


def count_feeds(feeds: Sequence[object]) -> str:
    """Returns the number of feeds as text: "1 feed", "2 feeds"."""
    return f"{len(feeds)} feed{'s' if len(feeds) != 1 else ''}"


def conceal_secrets(references: Sequence[str]) -> list[str]:
    """Removes secrets from URLs of feeds, because Prefect stores parameters (see ``reveal_secrets``)."""
    for feed in references:
        if is_url(feed) and (public_url := without_secrets(feed)) != feed:
            _full_urls[public_url] = feed
    return [without_secrets(feed) if is_url(feed) else feed for feed in references]


def reveal_secrets(feed: str) -> str:
    """Returns the original URL of a feed whose secrets ``conceal_secrets`` has removed in this process.

    Any other reference is returned unchanged.
    """
    return _full_urls.get(feed, feed)


def unreadable_path_error(source: str, error: OSError) -> FeedError:
    """Returns a FeedError for a file or folder that cannot be read; the message contains the remedy."""
    advice = "give this user read permission" if isinstance(error, PermissionError) else "name another path"
    return FeedError(f"{source}: cannot be read ({error.strerror or error}); {advice}")
