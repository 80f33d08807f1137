"""Fills missing categories of feeds with the champion model and merges the feeds into one guide, every hour.

The champion is the registered model that is served. No model is trained.
"""

from prefect import flow, get_run_logger
from prefect.artifacts import create_markdown_artifact
from prefect.context import FlowRunContext

from flows.champion import champion_folder
from flows.ownership import tag_with_home
from flows.refresh_settings import RefreshSettings
from flows.run_context import name_run
from flows.settings import Feeds, ModelReference
from storage.home.workspace import Workspace
from tasks.enrich.copies import EnrichedCopy
from tasks.enrich.task import fill
from tasks.ingest.task import open_secret_block
from tasks.merge.task import merge

WAIT_SECONDS = 3000.0  # to wait for another run in the home; the schedule starts a run every hour
DEFAULT_SETTINGS = RefreshSettings()


@flow(name="refresh", flow_run_name=name_run, on_running=[tag_with_home])
def refresh(
    feeds: Feeds,
    home: str = "guidespace-home",
    settings: RefreshSettings = DEFAULT_SETTINGS,
    model: ModelReference = None,
) -> list[str]:
    """Reads feeds into the catalogue, fills missing categories, writes the feeds and one merged guide.

    Args:
        feeds: XMLTV files, globs, folders, URLs, plain or compressed; env:NAME or secret:NAME hide a URL.
        home: Folder of the home; files are written to its folders ``enriched`` and ``merged``.
        settings: Settings of reading, filling and merging.
        model: URL or file of a model, env:NAME, or registered model; None for the champion of the home.

    Returns:
        Paths of the written copies of the feeds, without those that failed.
    """
    workspace, logger = Workspace(home), get_run_logger()
    description = f"refresh of {len(feeds)} feed{'s' if len(feeds) != 1 else ''}"
    with workspace.writing(description, wait_seconds=WAIT_SECONDS, report_wait=logger.warning):
        copies = fill(
            home,
            [open_secret_block(feed) for feed in feeds],
            settings.ingest,
            settings.enrich,
            str(champion_folder(home, model, logger.warning)),
        )
        merge_report = merge(home, copies, settings.ingest, settings.guide)
    if FlowRunContext.get():
        report = format_report(copies, merge_report)
        create_markdown_artifact(report, key="refresh-report", description=description)
    return [feed.file for feed in copies if feed.file]


def format_report(copies: list[EnrichedCopy], merge_report: list[str]) -> str:
    """Formats the reports of the feeds and of the merged guide as Markdown."""
    lines = ["### Merged guide", "", *(f"- {line.strip()}" for line in merge_report), ""]
    for copy in copies:
        report = (f"FAILED: {copy.error}",) if copy.error else copy.report
        lines += [f"### {copy.source}", "", *(f"- {line.strip()}" for line in report), ""]
    return "\n".join(lines)
