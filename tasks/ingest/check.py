"""Reads the beginning of each feed before a run starts, so that an unusable feed is reported at once."""

from collections.abc import Sequence
from pathlib import Path

from tasks.ingest.guides import find_guides
from tasks.ingest.readers import read_batches
from tasks.ingest.results import Failure, raise_if_decisive
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.decompress import FeedStream
from tasks.ingest.sources.feeds import SECRET, Feed, FeedError, NamedFeed, access_denied, is_url, source_of
from tasks.ingest.sources.resolve import locate


def check_feeds(references: Sequence[str], settings: IngestSettings) -> None:
    """Raises FeedError if no feed is readable, or if a required feed is missing, empty or not a guide.

    Only local files are checked: URLs are not requested, and Secret blocks of Prefect are not opened.
    """
    checkable = [feed for feed in references if not feed.startswith(SECRET)]
    if references and not checkable:
        return
    locations, errors = locate(checkable, settings.private_addresses)
    failures = [Failure(source=source, error=error) for source, error in errors]
    for location in locations:
        try:
            if not isinstance(location, NamedFeed) and not is_url(location):
                _check_file(Path(location), settings)
        except (FeedError, PermissionError) as error:
            source = source_of(location)
            problem = error if isinstance(error, FeedError) else access_denied(source, error)
            failures.append(Failure(source=source, error=problem))
    is_any_read = len(checkable) < len(references) or len(failures) - len(errors) < len(locations)
    raise_if_decisive(failures, settings, is_any_read=is_any_read)


def _check_file(file: Path, settings: IngestSettings) -> None:
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
