"""Task of the flow refresh: reads feeds into the catalogue and writes an enriched copy of each."""

import hashlib
import re
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from prefect import get_run_logger, task

from storage.home.corrections import read_corrections
from storage.home.workspace import Workspace
from storage.home.zones import home_zone
from tasks.enrich.enrich import plan, read_guide
from tasks.enrich.errors import EnrichError
from tasks.enrich.model import CategoryModel
from tasks.enrich.output import write_guide
from tasks.enrich.report import report_lines
from tasks.enrich.settings import EnrichOptions
from tasks.enrich.source import Source
from tasks.ingest.publish import read_and_publish
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.download import fetch
from tasks.ingest.sources.feeds import Feed, FeedError, NamedFeed, source_of
from tasks.ingest.sources.resolve import locate

FOLDER = "enriched"  # folder in the home
_SUFFIXES = re.compile(r"(\.(xml|xmltv|gz|xz|bz2|zst|zip))+$", re.IGNORECASE)


@dataclass(frozen=True)
class Filled:
    """Result for one feed: the enriched file and its report, or an error."""

    source: str
    file: str = ""
    report: tuple[str, ...] = ()
    error: str = ""


@task(name="fill", task_run_name="fill", persist_result=False)
def fill(
    home: str, feeds: Sequence[str | NamedFeed], reading: IngestSettings, options: EnrichOptions, model: str
) -> list[Filled]:
    """Reads feeds into the catalogue and writes each to the home's folder ``enriched``.

    Each feed is downloaded once. A feed that fails does not stop the others.

    Args:
        home: Folder of the home.
        feeds: Locations of guides.
        reading: Settings for reading feeds.
        options: Selects what is added.
        model: Folder of the model that predicts categories.

    Raises:
        FeedError: All feeds failed.
    """
    workspace, logger = Workspace(home), get_run_logger()
    (workspace.home / FOLDER).mkdir(exist_ok=True)
    locations, errors = locate(feeds, reading.private_addresses)
    results = [Filled(source, error=str(error)) for source, error in errors]
    with ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory(dir=workspace.home, prefix="refresh-"))
        fetched: list[tuple[str, Sequence[Feed]]] = []
        for location in locations:
            source = source_of(location)
            address = location.location if isinstance(location, NamedFeed) else location
            try:
                download = stack.enter_context(fetch(address, Path(name), reading, source))
                fetched.append((source, download.feeds))
            except FeedError as error:
                results.append(Filled(source, error=str(error)))
        local = [NamedFeed(location=str(guides[0].file), source=source) for source, guides in fetched]
        home_guide = None
        if local:
            guide = read_and_publish(workspace, local, reading, None, lambda event: logger.info("%s", event))
            home_guide = workspace.folder(guide)
        loaded = CategoryModel(Path(model), read_corrections(workspace.home))
        for feed in (feed for _, guides in fetched for feed in guides):
            results.append(_fill(workspace, feed, reading, options, loaded, home_guide))
    for result in results:
        if result.error:
            logger.error("%s", result.error)
        for line in result.report:
            logger.info("%s: %s", result.source, line)
    if all(result.error for result in results):
        raise FeedError(results[0].error)
    return results


def _fill(
    workspace: Workspace,
    feed: Feed,
    reading: IngestSettings,
    options: EnrichOptions,
    model: CategoryModel,
    home_guide: Path | None,
) -> Filled:
    folder = workspace.home / FOLDER
    out = folder / file_name(feed.source)
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".work-") as name:
            zones = reading.zone(feed.source), home_zone(workspace.home).key
            source = Source(feed, reading.size_cap_bytes, *zones)
            enrichment = plan(source, *read_guide(source, Path(name), options), model, options, home_guide)
            write_guide(str(out), enrichment)
    except (FeedError, EnrichError) as error:
        return Filled(feed.source, error=str(error))
    enrichment.report.damage = source.damage
    return Filled(feed.source, str(out), tuple(report_lines(enrichment.report, options, str(out))))


def file_name(source: str) -> str:
    """Returns the name of the output file: the last part of the source, and eight digits of its hash."""
    stem = _SUFFIXES.sub("", re.split(r"[/!:]", source.rstrip("/"))[-1])
    digest = hashlib.sha256(source.encode()).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9_.-]', '_', stem)[:60]}-{digest}.xml.gz"
