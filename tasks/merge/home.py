"""Writes the merged guide of a home, ``merged/guide.xml.gz``, with a table of genres for Kodi."""

import datetime
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from storage.home.merged_guide import GENRES_FILE, MERGED_FOLDER, merged_file
from storage.home.zones import home_zone
from storage.source_patterns import rank_of
from tasks.enrich.copies import EnrichedCopy
from tasks.enrich.output import check_output, genres_file, write_output
from tasks.enrich.players import base as players
from tasks.enrich.players.kodi import genres_xml
from tasks.enrich.settings import EnrichOptions
from tasks.enrich.source import Source
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.feeds import Feed
from tasks.merge.decisions import TABLE_NAME
from tasks.merge.errors import MergeError
from tasks.merge.merge import Report, open_merger
from tasks.merge.settings import MergeSettings

DEFAULT_OPTIONS = EnrichOptions()


@dataclass(frozen=True)
class MergedGuide:
    """Path and report of a merged guide."""

    file: str  # path of the guide
    report: Report


def merge_copies(
    home: Path,
    copies: Sequence[EnrichedCopy],
    ingest_settings: IngestSettings,
    settings: MergeSettings,
    now: datetime.datetime,
    *,
    out: str = "",
    options: EnrichOptions = DEFAULT_OPTIONS,
) -> MergedGuide:
    """Merges the enriched copies of feeds into one guide, and replaces the previous guide if they differ.

    Args:
        home: Folder of the home.
        copies: Results of ``CopyWriter.update``; results without a file are ignored.
        ingest_settings: Settings for reading feeds: the priority of sources and their time zones.
        settings: Settings of channels, days and overlaps.
        now: Current time with a zone.
        out: File to write, "-" for standard output, or "" for the guide of the home. A table of genres is
            always written beside the guide of the home.
        options: Options of the copies; for Kodi, a table of genres is written beside ``out``, too.

    Raises:
        MergeError: There is no copy, the playlist cannot be read, or the guide would have no programme.
    """
    (home / MERGED_FOLDER).mkdir(exist_ok=True)
    genres_path = "" if out else str(merged_file(home).with_name(GENRES_FILE))
    out = out or str(merged_file(home))
    check_output(out, options)
    if options.needs(players.GENRES):
        genres_path = genres_path or str(genres_file(out))
    copies = [copy for copy in copies if copy.file]
    if not copies:
        raise MergeError("no feed can be read; see the errors above")
    zone = home_zone(home)
    copies.sort(key=lambda copy: rank_of(copy.source, ingest_settings.priority))
    with tempfile.TemporaryDirectory(dir=home / MERGED_FOLDER, prefix=".work-") as work_folder:
        sources = [_open_copy(copy, ingest_settings, zone.key) for copy in copies]
        table = home / MERGED_FOLDER / TABLE_NAME
        merger = open_merger(sources, settings, Path(work_folder), now.astimezone(zone), table)
        write_output(out, merger.pieces())
        if genres_path:
            write_output(genres_path, [genres_xml(merger.categories)])
    return MergedGuide(out, merger.report)


def _open_copy(copy: EnrichedCopy, ingest_settings: IngestSettings, home_zone: str) -> Source:
    """Creates the reader of an enriched copy."""
    file = Path(copy.file)
    feed = Feed(source=copy.source, file=file, content_digest=copy.digest, bytes=file.stat().st_size)
    return Source(feed, ingest_settings.size_cap_bytes, ingest_settings.zone(copy.source), home_zone)
