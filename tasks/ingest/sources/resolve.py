"""Resolves users' references to feeds: paths, patterns, folders, URLs and ``env:NAME``."""

import glob
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from storage.addresses import is_valid_url, without_secrets
from tasks.ingest.sources import feeds
from tasks.ingest.sources.download import describe_error
from tasks.ingest.sources.feeds import (
    ENV_PREFIX,
    GUIDE_SUFFIXES,
    SECRET_PREFIX,
    FeedError,
    NamedFeed,
    is_url,
    source_of,
)
from tasks.ingest.sources.private import PrivateAddress, check_address

FOLDER_SUFFIXES = (*GUIDE_SUFFIXES, ".zip")  # file name suffixes of guides in a folder
_MISTYPED_URL = re.compile(r"(?:https?|s?ftp|s3|gs)(?::|//)", re.IGNORECASE)  # start of a malformed URL


def resolve(references: Sequence[str | NamedFeed], private_addresses: bool = False) -> list[NamedFeed]:
    """Returns the distinct feeds for references to feeds. Raises FeedError if a reference is invalid."""
    located_feeds, errors = locate(references, private_addresses)
    for _, error in errors:
        raise error
    return located_feeds


def locate(
    references: Sequence[str | NamedFeed], private_addresses: bool = False
) -> tuple[list[NamedFeed], list[tuple[str, FeedError]]]:
    """Returns the distinct feeds for references to feeds, in the order of the references.

    The files that match a pattern and the files in a folder are sorted.

    Args:
        references: Paths, patterns, folders, URLs, and ``env:NAME`` (an environment variable that contains
            a path, a pattern, a folder or a URL).
        private_addresses: Whether patterns may be listed on hosts with private addresses.

    Returns:
        Feeds with absolute paths or URLs, and (name of the feed, error) for each reference that cannot be
        resolved.

    Raises:
        FeedError: There are no references, or two URLs differ only in secrets.
    """
    if not references:
        raise FeedError("no feed given; name a file, a pattern, a directory or a URL")
    located_feeds: dict[NamedFeed, None] = {}
    errors = []
    for feed in references:
        try:
            located_feeds.update(dict.fromkeys(_resolve_one(feed, private_addresses)))
        except FeedError as error:
            errors.append((_source_of_reference(feed), error))
        except OSError as error:
            source = _source_of_reference(feed)
            errors.append((source, feeds.unreadable_path_error(source, error)))
    _check_distinct(located_feeds)
    return list(located_feeds), errors


def _resolve_one(feed: str | NamedFeed, private_addresses: bool) -> list[NamedFeed]:
    """Returns the feeds for one path, pattern, folder, URL or ``env:NAME``.

    The source of a URL in an environment variable is ``env:NAME``, which hides the URL.
    """
    if isinstance(feed, NamedFeed) and feed.problem:
        raise FeedError(f"{feed.source}: {feed.problem}")
    name, text = ("", feeds.reveal_secrets(feed)) if isinstance(feed, str) else (feed.source, feed.location)
    if text.startswith(SECRET_PREFIX) and not name:
        raise FeedError(
            f"{text}: Secret blocks of Prefect are only opened by nightly, deployments and, if Prefect "
            "is installed, guide; expected env:NAME"
        )
    if text.startswith(ENV_PREFIX) and not name:
        name, text = text, os.environ.get(text.removeprefix(ENV_PREFIX), "").strip()
        if not text:
            raise FeedError(f"{name}: this environment variable is not set, or empty; expected a path or URL")
    if is_url(text):
        urls = _expand_pattern(text, name, private_addresses)
        source = name if urls == [text] else ""
        return [NamedFeed(location=url, source=source or source_of(url)) for url in urls]
    if _MISTYPED_URL.match(text) and not os.path.exists(text):
        raise _invalid_url_error(re.split("[?#]", text.rpartition("@")[2])[0])
    path = Path(text).expanduser()
    if isinstance(feed, NamedFeed) and path.is_file():
        return [feed]
    if path.is_dir():
        guides = (file for file in sorted(path.iterdir()) if file.name.lower().endswith(FOLDER_SUFFIXES))
        files = [str(file) for file in guides if file.is_file()]
        problem = f"no guide in this directory; expected files ending in {' '.join(FOLDER_SUFFIXES)}"
    elif path.exists():
        files, problem = [str(path)], ""
    elif glob.has_magic(str(path)):
        files, problem = find_files(str(path)), "the pattern matches no file"
    else:
        files, problem = [], "no such file; expected a path, a pattern, a directory or a URL"
    if not files:
        raise FeedError(f"{text}: {problem}")
    return [NamedFeed(location=path, source=path) for path in map(os.path.abspath, files)]


def _source_of_reference(reference: str | NamedFeed) -> str:
    """Returns the name of the feed for a reference that cannot be resolved."""
    if isinstance(reference, NamedFeed) or is_url(reference):
        return source_of(reference)
    if reference.startswith((ENV_PREFIX, SECRET_PREFIX)):
        return reference
    return os.path.abspath(os.path.expanduser(reference))


def _invalid_url_error(source: str) -> FeedError:
    return FeedError(
        f"{source}: not a valid URL; expected one such as https://host:8080/guide.xml.gz, with @ / : ? # "
        "in user and password written as %40 %2F %3A %3F %23"
    )


def _check_distinct(located_feeds: Iterable[NamedFeed]) -> None:
    """Raises FeedError if two URLs differ only in secrets, because they would have the same source."""
    sources: set[str] = set()
    for source in (feed.source for feed in located_feeds):
        if source in sources:
            raise FeedError(
                f"{source}: two URLs differ only in user, password or parameters that are not part of the "
                "source (docs/feeds.md). Remove one if they are the same feed; otherwise put each URL into "
                "an environment variable and use env:NAME"
            )
        sources.add(source)


def _expand_pattern(url: str, name: str, private_addresses: bool) -> list[str]:
    """Lists the URLs on an object store that match a URL with wildcards. Returns any other URL unchanged."""
    source = name or without_secrets(url)
    if not is_valid_url(url):
        raise _invalid_url_error(source)
    if url.lower().startswith(("http://", "https://")) or not glob.has_magic(url):
        return [url]
    import fsspec

    try:
        if not private_addresses:
            check_address(url)
        file_system, pattern = fsspec.core.url_to_fs(url)
        file_system.invalidate_cache()
        matches = sorted(str(file_system.unstrip_protocol(path)) for path in file_system.glob(pattern))
    except PrivateAddress as error:
        raise FeedError(f"{source}: not fetched: {error}") from None
    except Exception as error:  # stores raise their own exceptions
        is_final = isinstance(error, ImportError | ValueError | FileNotFoundError | PermissionError)
        error_class = FeedError if is_final else feeds.FeedUnreachable
        # from None: the cause may contain credentials
        raise error_class(f"{source}: cannot be listed ({describe_error(error, url)})") from None
    if not matches:
        raise FeedError(f"{source}: the pattern matches no file")
    return matches


def find_files(pattern: str) -> list[str]:
    """Lists the files that match a glob pattern, sorted. Unlike glob.glob, visits each folder only once."""
    base, double_star, subpattern = pattern.partition("**")
    if not double_star or base[-1:] not in ("", os.sep) or subpattern[:1] not in ("", os.sep):
        return sorted(filter(os.path.isfile, glob.glob(pattern)))  # ** that is not a path component means *
    subpattern = subpattern.lstrip(os.sep) or "*"
    folders = _walk_visible_folders(sorted(glob.glob(base)) if base else [""])
    patterns = (os.path.join(glob.escape(folder), subpattern) for folder in folders)
    return sorted({file for folder_pattern in patterns for file in find_files(folder_pattern)})


def _walk_visible_folders(bases: Iterable[str]) -> Iterator[str]:
    """Yields folders and their visible subfolders, without repetition. Follows symbolic links last."""
    real_folders: set[str] = set()
    queue = deque(bases)
    while queue:
        for folder, subfolders, _ in os.walk(queue.popleft() or os.curdir):  # does not follow links
            if (real_folder := os.path.realpath(folder)) in real_folders:
                subfolders.clear()
                continue
            real_folders.add(real_folder)
            yield folder
            subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
            paths = (os.path.join(folder, name) for name in subfolders)
            queue.extend(filter(os.path.islink, paths))
