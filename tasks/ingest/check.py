"""A look at the beginning of each feed, before anything is started for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tasks.ingest.feeds import BLOCK, Feed, FeedError, Named, guides_in, is_url, source_of
from tasks.ingest.outcomes import Failure, locate, stop_if_needed, unreadable
from tasks.ingest.prolog import read_prolog
from tasks.ingest.settings import IngestSettings
from tasks.ingest.streams import FeedStream


def check_feeds(given: Sequence[str], settings: IngestSettings) -> None:
    """Refuses feeds that are all missing, unreadable, empty, not XML or not XMLTV, or one that must be read.

    ``ingest.required`` names those. What URLs hold is left to the ingest, Secret blocks to Prefect's run.

    Raises:
        FeedError: One line about them.
    """
    here = [feed for feed in given if not feed.startswith(BLOCK)]
    if given and not here:
        return
    locations, failures = locate(here)
    not_found = len(failures)
    for location in locations:
        try:
            if not isinstance(location, Named) and not is_url(location):
                _check_file(Path(location), settings)
        except FeedError as error:
            failures.append(Failure(source=source_of(location), error=error))
        except PermissionError as error:
            failures.append(Failure(source=source_of(location), error=unreadable(source_of(location), error)))
    stop_if_needed(failures, settings, is_any_read=len(here) < len(given) or len(failures) - not_found < len(locations))


def _check_file(file: Path, settings: IngestSettings) -> None:
    """Looks at the beginning of a file and of its members."""
    size = file.stat().st_size
    if not size:
        raise FeedError(f"{file}: empty file (0 bytes); expected XMLTV")
    for source, member in guides_in(file, str(file)):
        stream = FeedStream(Feed(source=source, file=file, member=member, content_digest="", bytes=size), settings.size_cap_bytes)
        try:
            read_prolog(iter(stream), source)
        except FeedError as error:
            if stream.damage:
                raise stream.nothing_readable() from error
            raise
