"""Reads the beginning of each feed before a run starts, so that an unusable feed is reported at once."""

from collections.abc import Sequence
from pathlib import Path

from tasks.ingest.guides import find_guides
from tasks.ingest.readers import read_batches
from tasks.ingest.results import Failure, raise_if_fatal
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.decompress import FeedStream
from tasks.ingest.sources.feeds import SECRET_PREFIX, Feed, FeedError, is_url, unreadable_path_error
from tasks.ingest.sources.resolve import locate


def check_feeds(references: Sequence[str], settings: IngestSettings) -> None:
    """Raises FeedError if no feed is readable, or if a required feed cannot be read or is empty.

    Only local files are checked: URLs are not requested, and Secret blocks of Prefect are not opened.
    """
    references_to_check = [feed for feed in references if not feed.startswith(SECRET_PREFIX)]
    if references and not references_to_check:
        return
    feeds, errors = locate(references_to_check, settings.private_addresses)
    failures = [Failure(source=source, error=error) for source, error in errors]
    for feed in feeds:
        try:
            if not is_url(feed.location):
                _check_file(Path(feed.location), settings)
        except FeedError as error:
            failures.append(Failure(source=feed.source, error=error))
        except PermissionError as error:
            failures.append(Failure(source=feed.source, error=unreadable_path_error(feed.source, error)))
    is_any_read = len(references_to_check) < len(references) or len(failures) - len(errors) < len(feeds)
    raise_if_fatal(failures, settings, is_any_read=is_any_read)


def _check_file(file: Path, settings: IngestSettings) -> None:
    """Raises FeedError if no guide in a file can be read. Reads only the beginning of each guide."""
    size = file.stat().st_size
    if not size:
        raise FeedError(f"{file}: empty file (0 bytes); expected XMLTV")
    file_feed = Feed(source=str(file), file=file, content_digest="", bytes=size)
    errors = []
    feeds, _ = find_guides(file_feed, settings.size_cap_bytes)
    for feed in feeds:
        try:
            next(read_batches(FeedStream(feed, settings.size_cap_bytes), 1))
        except FeedError as error:
            errors.append(error)
    if len(errors) == len(feeds):
        raise errors[0]
