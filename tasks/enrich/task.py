"""The task of the flow refresh: feeds into the catalogue, and each written with its gaps filled."""

import hashlib
import re
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from prefect import get_run_logger, task

from storage.corrections import read_corrections
from storage.workspace import Workspace
from storage.zones import home_zone
from tasks.enrich.enrich import plan, read_guide
from tasks.enrich.errors import EnrichError
from tasks.enrich.model import CategoryModel
from tasks.enrich.output import write_output
from tasks.enrich.report import report_lines
from tasks.enrich.settings import EnrichOptions
from tasks.enrich.source import Source
from tasks.ingest.publish import read_and_publish
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.download import Limits, fetch
from tasks.ingest.sources.feeds import Feed, FeedError, Named, source_of
from tasks.ingest.sources.resolve import locate

FOLDER = "enriched"  # in the home
_ENDS = re.compile(r"(\.(xml|xmltv|gz|xz|bz2|zst|zip))+$", re.IGNORECASE)


@dataclass(frozen=True)
class Filled:
    """A feed with its gaps filled, or why there is none."""

    source: str
    file: str = ""
    report: tuple[str, ...] = ()
    failed: str = ""


@task(name="fill", task_run_name="fill", persist_result=False)
def fill(
    home: str, feeds: Sequence[str | Named], reading: IngestSettings, options: EnrichOptions, model: str
) -> list[Filled]:
    """Reads feeds into the catalogue and writes each to the home's folder ``enriched``; each is fetched once.

    A feed that fails does not stop the others.

    Args:
        model: Folder of the model that votes.

    Raises:
        FeedError: No feed can be used.
    """
    workspace, logger = Workspace(home), get_run_logger()
    (workspace.home / FOLDER).mkdir(exist_ok=True)
    limits = Limits.of(reading)
    locations, errors = locate(feeds, reading.private_addresses)
    done = [Filled(source, failed=str(error)) for source, error in errors]
    with ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory(dir=workspace.home, prefix="refresh-"))
        fetched: list[tuple[str, Sequence[Feed]]] = []
        for location in locations:
            source = source_of(location)
            address = location.location if isinstance(location, Named) else location
            try:
                found = stack.enter_context(fetch(address, Path(name), limits, source))
                fetched.append((source, found.feeds))
            except FeedError as error:
                done.append(Filled(source, failed=str(error)))
        local = [Named(location=str(own[0].file), source=source) for source, own in fetched]
        home_guide = None
        if local:
            guide = read_and_publish(workspace, local, reading, None, lambda event: logger.info("%s", event))
            home_guide = workspace.folder(guide)
        loaded = CategoryModel(Path(model), read_corrections(workspace.home))
        for feed in (feed for _, own in fetched for feed in own):
            done.append(_fill(workspace, feed, reading, options, loaded, home_guide))
    for each in done:
        if each.failed:
            logger.error("%s", each.failed)
        for line in each.report:
            logger.info("%s: %s", each.source, line)
    if all(each.failed for each in done):
        raise FeedError(done[0].failed)
    return done


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
            write_output(str(out), enrichment.pieces())
    except (FeedError, EnrichError) as error:
        return Filled(feed.source, failed=str(error))
    enrichment.report.damage = source.damage
    return Filled(feed.source, str(out), tuple(report_lines(enrichment.report, options, str(out))))


def file_name(source: str) -> str:
    """The file of a source, the same each time: its own name, and eight digits of its whole address."""
    stem = _ENDS.sub("", re.split(r"[/!:]", source.rstrip("/"))[-1])
    digest = hashlib.sha256(source.encode()).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9_.-]', '_', stem)[:60]}-{digest}.xml.gz"
