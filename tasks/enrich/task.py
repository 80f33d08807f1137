"""Defines the Prefect task of the flow refresh that reads feeds and writes enriched copies of the feeds."""

from collections.abc import Sequence
from pathlib import Path

from prefect import get_run_logger, task

from storage.home.guides import current_guide
from storage.home.workspace import Workspace
from tasks.enrich.copies import CopyWriter, EnrichedCopy
from tasks.enrich.settings import EnrichOptions
from tasks.ingest.publish import read_and_publish
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.feeds import FeedError, NamedFeed


@task(name="fill", task_run_name="fill", persist_result=False)
def fill(
    home: str,
    feeds: Sequence[str | NamedFeed],
    ingest_settings: IngestSettings,
    options: EnrichOptions,
    model: str,
) -> list[EnrichedCopy]:
    """Reads feeds into the catalogue and writes an enriched copy of each feed to the folder ``enriched``.

    Each feed is downloaded once, and only if it has changed. If a feed fails, the other feeds are still
    enriched.

    Args:
        home: Folder of the home.
        feeds: Locations of the feeds.
        ingest_settings: Settings for reading feeds.
        options: Options that select what is added to a guide.
        model: Folder of the model that predicts categories.

    Returns:
        One result per feed.

    Raises:
        FeedError: All feeds failed.
    """
    workspace, logger = Workspace(home), get_run_logger()

    def publish(local_feeds: Sequence[NamedFeed]) -> Path:
        guide = read_and_publish(
            workspace, local_feeds, ingest_settings, None, lambda event: logger.info("%s", event)
        )
        return workspace.folder(guide)

    home_guide = current_guide(workspace)
    results = CopyWriter(workspace.home, ingest_settings, options, Path(model)).update(
        feeds, publish, home_guide and workspace.folder(home_guide)
    )
    for result in results:
        if result.error:
            logger.error("%s", result.error)
        for line in result.report if not result.unchanged else ["unchanged"]:
            logger.info("%s: %s", result.source, line)
    if all(result.error for result in results):
        raise FeedError(results[0].error)
    return results
