"""Fills missing categories of feeds with the champion model and merges the feeds into one guide.

The champion is the registered model that is served. The flow trains no model, so it can run every hour.
"""

from prefect import flow, get_run_logger
from prefect.artifacts import create_markdown_artifact
from prefect.context import FlowRunContext

from flows.champion import find_champion
from flows.defaults import DEFAULT_HOME, HOURLY_WAIT_SECONDS
from flows.ownership import tag_with_home
from flows.refresh_settings import RefreshSettings
from flows.run_context import name_run
from flows.settings import Feeds, ModelReference
from storage.home.workspace import Workspace
from tasks.enrich.copies import EnrichedCopy
from tasks.enrich.task import fill
from tasks.ingest.sources.feeds import count_feeds
from tasks.ingest.task import open_secret_block
from tasks.merge.task import merge

DEFAULT_SETTINGS = RefreshSettings()


@flow(name="refresh", flow_run_name=name_run, on_running=[tag_with_home])
def refresh(
    feeds: Feeds,
    home: str = DEFAULT_HOME,
    settings: RefreshSettings = DEFAULT_SETTINGS,
    model: ModelReference = None,
) -> list[str]:
    """Reads feeds into the catalogue. Writes copies of feeds with categories filled in, and one merged guide.

    Args:
        feeds: XMLTV files, globs, folders or URLs, plain or compressed; secret URLs: env:NAME or secret:NAME.
        home: Folder of the home; the guides are written to its folders ``enriched`` and ``merged``.
        settings: Settings for reading feeds, filling categories and merging.
        model: URL, file, env:NAME or registered name of a model; empty: the champion of the home.

    Returns:
        Paths of the copies with categories filled in; feeds that failed have none.
    """
    workspace, logger = Workspace(home), get_run_logger()
    description = f"refresh of {count_feeds(feeds)}"
    with workspace.writing(description, wait_seconds=HOURLY_WAIT_SECONDS, report_wait=logger.warning):
        copies = fill(
            home,
            [open_secret_block(feed) for feed in feeds],
            settings.ingest,
            settings.enrich,
            str(find_champion(home, model, logger.warning).folder),
        )
        merge_report = merge(home, copies, settings.ingest, settings.guide)
    if FlowRunContext.get():
        report = format_report(copies, merge_report)
        create_markdown_artifact(report, key="refresh-report", description=description)
    return [copy.file for copy in copies if copy.file]


def format_report(copies: list[EnrichedCopy], merge_report: list[str]) -> str:
    """Formats the reports about the copies of the feeds and about the merged guide as Markdown."""
    lines = ["### Merged guide", "", *(f"- {line.strip()}" for line in merge_report), ""]
    for copy in copies:
        report = (f"FAILED: {copy.error}",) if copy.error else copy.report
        lines += [f"### {copy.source}", "", *(f"- {line.strip()}" for line in report), ""]
    return "\n".join(lines)
