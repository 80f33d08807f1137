"""Writes an enriched copy of each feed to the folder ``enriched`` of a home.

A copy is written again if its feed, the model or the options have changed. It is not written again if only
the home's guide has changed, from which episode numbers are copied. If a feed cannot be downloaded, its last
copy remains.

A location (URL or path) has several copies if it is a zip of several feeds. The state file ``NAME.json`` of a
location lists its copies and contains the HTTP validators (ETag, Last-Modified) of the last download. With
the validators, the next request is conditional: the server sends the feed only if it has changed.
"""

import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from storage.catalogue.feeds import read_status
from storage.digests import content_digest
from storage.home.corrections import CORRECTIONS, read_corrections
from storage.home.zones import home_zone
from storage.json_file import write_json
from storage.stages import fingerprint
from tasks.enrich.enrich import open_enricher, read_guide
from tasks.enrich.errors import EnrichError
from tasks.enrich.model import CategoryModel
from tasks.enrich.output import write_guide
from tasks.enrich.report import report_lines
from tasks.enrich.settings import EnrichOptions
from tasks.enrich.source import Source
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.download import FetchResult, Validators, fetch
from tasks.ingest.sources.feeds import Feed, FeedError, NamedFeed
from tasks.ingest.sources.resolve import locate

FOLDER = "enriched"  # folder of the copies in the home
_FEED_SUFFIXES = re.compile(r"(\.(xml|xmltv|gz|xz|bz2|zst|zip))+$", re.IGNORECASE)
Publish = Callable[[Sequence[NamedFeed]], Path]  # reads feeds into the catalogue; returns the Guide folder


@dataclass(frozen=True)
class EnrichedCopy:
    """Result of enriching one feed. If the feed cannot be read, ``file`` is the copy of an earlier run."""

    source: str  # name of the feed
    file: str = ""  # path of the enriched copy; "" if there is none
    report: tuple[str, ...] = ()  # lines that say what was added to the feed
    error: str = ""  # why the feed could not be read or enriched; "" after success
    digest: str = ""  # digest of the content of the feed
    unchanged: bool = False  # whether the copy of an earlier run is up to date


@dataclass(frozen=True)
class CopyWriter:
    """Writes the enriched copies of feeds in a home.

    Attributes:
        home: Folder of the home.
        ingest_settings: Settings for reading feeds.
        options: Options that select what is added to a guide.
        model_folder: Folder of the model that predicts categories.
    """

    home: Path
    ingest_settings: IngestSettings
    options: EnrichOptions
    model_folder: Path

    def update(
        self,
        feeds: Sequence[str | NamedFeed],
        publish: Publish | None = None,
        home_guide: Path | None = None,
    ) -> list[EnrichedCopy]:
        """Downloads feeds and writes an enriched copy of each feed that has changed.

        If a feed fails, the other feeds are still enriched.

        Args:
            feeds: Locations of the feeds.
            publish: Function that reads the downloaded feeds into the catalogue before copies are written.
            home_guide: Folder of the home's newest Guide, used unless ``publish`` returns a newer one.

        Returns:
            One result per feed, in no particular order.
        """
        (self.home / FOLDER).mkdir(exist_ok=True)
        located_feeds, errors = locate(feeds, self.ingest_settings.private_addresses)
        results = [result for source, error in errors for result in self._failed_results(source, error)]
        feeds_status: Any = read_status(self.home)["feeds"]
        catalogue_sources = {feed["source"] for feed in feeds_status}
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(dir=self.home, prefix="refresh-"))
            downloads: list[tuple[str, FetchResult]] = []
            for feed in located_feeds:
                source = feed.source
                state = self._read_state(source)
                is_current = bool(state.copies) and state.key == self._cache_key(source)
                # A feed that ``publish`` has never read into the catalogue is downloaded in any case.
                if publish and not catalogue_sources.issuperset(copy.source for copy in state.copies):
                    is_current = False
                validators = state.validators if is_current else None
                try:
                    download = stack.enter_context(
                        fetch(feed.location, Path(folder), self.ingest_settings, source, validators)
                    )
                    downloads.append((source, download))
                except FeedError as error:
                    results += self._failed_results(source, error)
            local_feeds = [
                NamedFeed(location=str(download.feeds[0].file), source=source)
                for source, download in downloads
                if download.feeds
            ]
            if local_feeds and publish:
                with suppress(FeedError):  # the results of feeds that cannot be read contain their errors
                    home_guide = publish(local_feeds)
            for source, download in downloads:
                results += self._write_copies(source, download, home_guide)
        return results

    def _failed_results(self, source: str, error: FeedError) -> list[EnrichedCopy]:
        """Returns the last copies of a failed location with the error; without copies, only the error."""
        copies = self._read_state(source).copies
        if not copies:
            return [EnrichedCopy(source, error=str(error))]
        return [replace(copy, report=(), error=f"{error}; its last copy remains") for copy in copies]

    def _write_copies(
        self, source: str, download: FetchResult, home_guide: Path | None
    ) -> list[EnrichedCopy]:
        """Writes copies of the feeds of a download that have changed, and the state file of the location."""
        state, key = self._read_state(source), self._cache_key(source)
        if download.unchanged:
            return [replace(copy, unchanged=True) for copy in state.copies]
        copies_by_source = {copy.source: copy for copy in state.copies}
        results = []
        for feed in download.feeds:
            copy = copies_by_source.get(feed.source)
            if copy and state.key == key and copy.digest == feed.content_digest:
                results.append(replace(copy, unchanged=True))
            else:
                results.append(self._write_copy(feed, home_guide, copy))
        copies = [replace(copy, unchanged=False, error="") for copy in results if copy.file]
        is_complete = not any(copy.error for copy in results)
        # Without validators, the next run downloads the feeds again and retries those that failed.
        validators = (is_complete and download.validators) or Validators()
        content = {"key": key, **asdict(validators), "copies": [*map(asdict, copies)]}
        write_json(self._state_file(source), content)
        return results

    def _write_copy(
        self, feed: Feed, home_guide: Path | None, last_copy: EnrichedCopy | None
    ) -> EnrichedCopy:
        """Writes the enriched copy of one feed; returns it, or the last copy (if any) with the error."""
        folder = self.home / FOLDER
        path = folder / file_name(feed.source)
        try:
            with tempfile.TemporaryDirectory(dir=folder, prefix=".work-") as work:
                source = Source(
                    feed=feed,
                    size_cap_bytes=self.ingest_settings.size_cap_bytes,
                    zone=self.ingest_settings.zone(feed.source),
                    home_zone=home_zone(self.home).key,
                )
                survey, guide = read_guide(source, Path(work), self.options)
                model, options = self._category_model, self.options
                enricher = open_enricher(source, survey, guide, model, options, home_guide)
                write_guide(str(path), enricher)
        except (FeedError, EnrichError) as error:
            if last_copy is None:
                return EnrichedCopy(feed.source, error=str(error))
            # Without a digest, the copy is written again when the feed can be read.
            return replace(last_copy, report=(), digest="", error=f"{error}; its last copy remains")
        report = tuple(report_lines(enricher.report, self.options, str(path)))
        return EnrichedCopy(feed.source, str(path), report, digest=feed.content_digest)

    @cached_property
    def _category_model(self) -> CategoryModel:
        """Model that predicts categories, with the corrections of the home."""
        return CategoryModel(self.model_folder, read_corrections(self.home))

    def _cache_key(self, source: str) -> str:
        """Returns a digest of all inputs from which a location's copies are made, except for its feeds."""
        vocabulary = content_digest(self.options.vocabulary)
        inputs = [str(self.model_folder), content_digest(self.home / CORRECTIONS)]
        inputs += [repr(self.options), vocabulary, self.ingest_settings.zone(source)]
        inputs += [home_zone(self.home).key, fingerprint(__file__)]
        return hashlib.sha256(json.dumps(inputs).encode()).hexdigest()

    def _state_file(self, source: str) -> Path:
        """Returns the path of the JSON file with the state of the copies of a feed."""
        return self.home / FOLDER / file_name(source).replace(".xml.gz", ".json")

    def _read_state(self, source: str) -> "_State":
        """Reads the state of the copies of a feed; empty if the file is damaged or a copy is missing."""
        with suppress(OSError, ValueError, TypeError, KeyError):
            content = json.loads(self._state_file(source).read_text(encoding="utf-8"))
            copies = [EnrichedCopy(**{**copy, "report": tuple(copy["report"])}) for copy in content["copies"]]
            if all(Path(copy.file).exists() for copy in copies):
                validators = Validators(etag=content["etag"], last_modified=content["last_modified"])
                return _State(content["key"], validators, tuple(copies))
        return _State()


@dataclass(frozen=True)
class _State:
    """Content of the state file of a location, which the last update wrote."""

    key: str = ""  # result of ``CopyWriter._cache_key``
    validators: Validators = field(default_factory=Validators)  # ETag and Last-Modified of the last download
    copies: tuple[EnrichedCopy, ...] = ()


def file_name(source: str) -> str:
    """Returns the file name of a copy: the last part of the feed's name, and eight digits of its hash."""
    stem = _FEED_SUFFIXES.sub("", re.split(r"[/!:]", source.rstrip("/"))[-1])
    digest = hashlib.sha256(source.encode()).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9_.-]', '_', stem)[:60]}-{digest}.xml.gz"
