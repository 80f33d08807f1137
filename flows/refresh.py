"""Fills missing categories of feeds with the champion model, every hour and without training."""

from prefect import flow, get_run_logger
from prefect.artifacts import create_markdown_artifact
from prefect.context import FlowRunContext

from flows.champion import champion_folder
from flows.ownership import tag_with_home
from flows.run_context import name_run
from flows.settings import Feeds
from storage.home.workspace import Workspace
from tasks.enrich.settings import EnrichOptions
from tasks.enrich.task import Filled, fill
from tasks.form import configurable, setting
from tasks.ingest.settings import IngestSettings
from tasks.ingest.task import opened

WAIT_SECONDS = 3000.0  # for another run in the home; less than an hour, the interval of the schedule


@configurable
class RefreshSettings:
    """Settings of the flow refresh."""

    ingest: IngestSettings = setting(IngestSettings(), "Reading feeds")
    enrich: EnrichOptions = setting(EnrichOptions(), "What is filled, and by which names")


DEFAULT = RefreshSettings()


@flow(name="refresh", flow_run_name=name_run, on_running=[tag_with_home])
def refresh(feeds: Feeds, home: str = "guidespace-home", settings: RefreshSettings = DEFAULT) -> list[str]:
    """Reads feeds into the catalogue, fills missing categories, and writes the feeds; returns the files.

    Args:
        feeds: XMLTV files, globs, folders, URLs, plain or compressed; env:NAME or secret:NAME hide a URL.
        home: Folder with a champion model; files are written to its folder ``enriched``.
        settings: Settings of reading and filling.
    """
    workspace, logger = Workspace(home), get_run_logger()
    what = f"refresh of {len(feeds)} feed{'s' if len(feeds) != 1 else ''}"
    with workspace.writing(what, wait_seconds=WAIT_SECONDS, report_wait=logger.warning):
        filled = fill(
            home,
            [opened(feed) for feed in feeds],
            settings.ingest,
            settings.enrich,
            str(champion_folder(home)),
        )
    if FlowRunContext.get():
        create_markdown_artifact(report_markdown(filled), key="refresh-report", description=what)
    return [feed.file for feed in filled if feed.file]


def report_markdown(filled: list[Filled]) -> str:
    """Formats the report as Markdown."""
    lines = []
    for feed in filled:
        report = feed.report or (f"FAILED: {feed.error}",)
        lines += [f"### {feed.source}", "", *(f"- {line.strip()}" for line in report), ""]
    return "\n".join(lines)
