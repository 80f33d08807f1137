"""Resolves paths, patterns, directories, URLs and references to absolute paths and URLs."""

import glob
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import fsspec

from storage.addresses import is_valid_url, without_secrets
from tasks.ingest.sources import feeds
from tasks.ingest.sources.download import message_of
from tasks.ingest.sources.feeds import BLOCK, PLAIN, VARIABLE, FeedError, Named, is_url, source_of
from tasks.ingest.sources.private import PrivateAddress, check_address

SUFFIXES = (*PLAIN, ".zip")  # what is taken from a directory
_MISTYPED = re.compile(r"(?:https?|s?ftp|s3|gs)(?::|//)", re.IGNORECASE)  # starts like a URL, but is none


def resolve(given: Sequence[str | Named], private_addresses: bool = False) -> list[str | Named]:
    """As ``locate``, but raises the first error."""
    found, errors = locate(given, private_addresses)
    for _, error in errors:
        raise error
    return found


def locate(
    given: Sequence[str | Named], private_addresses: bool = False
) -> tuple[list[str | Named], list[tuple[str, FeedError]]]:
    """Absolute paths and URLs, each once, as given (patterns and directories sorted); sources and errors.

    Args:
        private_addresses: Whether a host with a private address may be asked which files match a pattern.

    Raises:
        FeedError: Nothing was given, or two URLs have one source.
    """
    if not given:
        raise FeedError("no feed given; name a file, a pattern, a directory or a URL")
    found: dict[str | Named, None] = {}
    errors = []
    for feed in given:
        try:
            found.update(dict.fromkeys(_locations(feed, private_addresses)))
        except FeedError as error:
            errors.append((_source(feed), error))
        except OSError as error:
            errors.append((_source(feed), feeds.unreadable(_source(feed), error)))
    _refuse_same_source(found)
    return list(found), errors


def _locations(feed: str | Named, private_addresses: bool) -> list[str | Named]:
    """A URL given by a reference is Named by it."""
    name, text = ("", feeds.revealed(feed)) if isinstance(feed, str) else (feed.source, feed.location)
    if text.startswith(BLOCK) and not name:
        raise FeedError(f"{text}: a Secret block is opened in runs of Prefect only; expected {VARIABLE}NAME")
    if text.startswith(VARIABLE) and not name:
        name, text = text, os.environ.get(text.removeprefix(VARIABLE), "").strip()
        if not text:
            raise FeedError(f"{name}: this environment variable is not set, or empty; expected a path or URL")
    if is_url(text):
        urls = _expanded(text, name, private_addresses)
        return [Named(location=text, source=name)] if name and urls == [text] else list(urls)
    if _MISTYPED.match(text) and not os.path.exists(text):
        raise _invalid_url(re.split("[?#]", text.rpartition("@")[2])[0])
    path = Path(text).expanduser()
    if path.is_dir():
        guides = (file for file in sorted(path.iterdir()) if file.name.lower().endswith(SUFFIXES))
        files = [str(file) for file in guides if file.is_file()]
        problem = f"no guide in this directory; expected files ending in {' '.join(SUFFIXES)}"
    elif path.exists():
        files, problem = [str(path)], ""
    elif glob.has_magic(str(path)):
        files, problem = matching_files(str(path)), "the pattern matches no file"
    else:
        files, problem = [], "no such file; expected a path, a pattern, a directory or a URL"
    if not files:
        raise FeedError(f"{text}: {problem}")
    return [os.path.abspath(file) for file in files]


def _source(given: str | Named) -> str:
    if isinstance(given, Named) or is_url(given):
        return source_of(given)
    return given if given.startswith((VARIABLE, BLOCK)) else os.path.abspath(os.path.expanduser(given))


def _invalid_url(shown: str) -> FeedError:
    return FeedError(
        f"{shown}: not a valid URL; expected one such as https://host:8080/guide.xml.gz, with @ / : ? # "
        "in user and password written as %40 %2F %3A %3F %23"
    )


def _refuse_same_source(locations: Iterable[str | Named]) -> None:
    """Two URLs of one source would replace each other's programmes."""
    seen: set[str] = set()
    for source in map(source_of, locations):
        if source in seen:
            raise FeedError(
                f"{source}: given twice, with a different user, password or parameter that is no part of "
                "its name (docs/feeds.md). If they are one feed, leave one out; if they are two, put each "
                f"URL into an environment variable and give {VARIABLE}NAME"
            )
        seen.add(source)


def _expanded(url: str, name: str, private_addresses: bool) -> list[str]:
    """The URLs that a pattern on an object store matches; any other URL unchanged (http has no patterns)."""
    shown = name or without_secrets(url)
    if not is_valid_url(url):
        raise _invalid_url(shown)
    if url.lower().startswith(("http://", "https://")) or not glob.has_magic(url):
        return [url]
    try:
        if not private_addresses:
            check_address(url)
        system, pattern = fsspec.core.url_to_fs(url)
        system.invalidate_cache()
        found = sorted(str(system.unstrip_protocol(path)) for path in system.glob(pattern))
    except PrivateAddress as error:
        raise FeedError(f"{shown}: not fetched: {error}") from None
    except Exception as error:  # each store has exceptions of its own
        is_final = isinstance(error, ImportError | ValueError | FileNotFoundError | PermissionError)
        kind = FeedError if is_final else feeds.FeedUnreachable
        # from None: the cause may hold credentials
        raise kind(f"{shown}: cannot be listed ({message_of(error, url)})") from None
    if not found:
        raise FeedError(f"{shown}: the pattern matches no file")
    return found


def matching_files(pattern: str) -> list[str]:
    """Sorted files that match; ``**`` enters each folder once (glob follows a link to a parent 40 times)."""
    before, double_star, after = pattern.partition("**")
    if not double_star or before[-1:] not in ("", os.sep) or after[:1] not in ("", os.sep):
        return sorted(filter(os.path.isfile, glob.glob(pattern)))  # a ** inside of a name is a *
    after = after.lstrip(os.sep) or "*"
    folders = _folders(sorted(glob.glob(before)) if before else [""])
    patterns = (os.path.join(glob.escape(folder), after) for folder in folders)
    return sorted({file for each in patterns for file in matching_files(each)})


def _folders(bases: Iterable[str]) -> Iterator[str]:
    """The folders and all visible ones below, each once; by a link only if no other name leads there."""
    seen: set[str] = set()
    queue = deque(bases)
    while queue:
        for folder, below, _ in os.walk(queue.popleft() or os.curdir):  # follows no links
            if (real := os.path.realpath(folder)) in seen:
                below.clear()
                continue
            seen.add(real)
            yield folder
            below[:] = sorted(name for name in below if not name.startswith("."))
            paths = (os.path.join(folder, name) for name in below)
            queue.extend(filter(os.path.islink, paths))
