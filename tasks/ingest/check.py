"""A look at the beginning of each feed, before anything is started for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tasks.ingest.feeds import BLOCK, Feed, FeedError, Named, guides_in, is_url, resolve
from tasks.ingest.prolog import read_prolog
from tasks.ingest.settings import IngestSettings
from tasks.ingest.streams import FeedStream


def check_feeds(given: Sequence[str], settings: IngestSettings) -> None:
    """Refuses local feeds that are missing, empty, not XML or not XMLTV, and URLs that cannot be taken apart.

    What URLs hold is left to the ingest.

    Raises:
        FeedError: One line about the first that cannot be read.
    """
    here = [feed for feed in given if not feed.startswith(BLOCK)]  # these are opened in Prefect's run only
    for location in resolve(here) if here or not given else []:
        if not isinstance(location, Named) and not is_url(location):
            file = Path(location)
            size = file.stat().st_size
            if not size:
                raise FeedError(f"{location}: empty file (0 bytes); expected XMLTV")
            for source, member in guides_in(file, location):
                stream = FeedStream(Feed(source=source, file=file, member=member, content_digest="", bytes=size), settings.size_cap_bytes)
                try:
                    read_prolog(iter(stream), source)
                except FeedError as error:
                    if stream.damage:
                        raise stream.nothing_readable() from error
                    raise
